"""Collectives for TensorFlow 2: ``npu.distribute``."""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "npu_shim.npu_device.distribute.hccl": (
            "all_reduce broadcast npu_distributed_keras_optimizer_wrapper shard_and_rebatch_dataset"
        ),
        "npu_shim.npu_device.distribute.keras_models": "data_parallel",
        "npu_shim.npu_device.distribute.global_batches": "is_root shard_batch shard_batches",
        "npu_shim.npu_device.distribute.gradient_sharing": "distributed_optimizer",
        "npu_shim.npu_device.distribute.random_state": "share_random_state",
        "npu_shim.npu_device.distribute.batch_norm": "sync_batch_norm",
        "npu_shim.npu_device.distribute.weight_update_grouping": "grouping_broadcast grouping_gradients_apply",
        "npu_shim.npu_device.distribute.strategy": "NPUStrategy",
    },
)
