"""Collectives for TensorFlow 2: ``npu.distribute``."""

from __future__ import annotations

from npu_shim._lazy_names import lazy_names

__all__ = [
    "all_reduce",
    "broadcast",
    "grouping_broadcast",
    "grouping_gradients_apply",
    "npu_distributed_keras_optimizer_wrapper",
    "shard_and_rebatch_dataset",
]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "npu_shim.npu_device.distribute.hccl": (
            "all_reduce broadcast npu_distributed_keras_optimizer_wrapper shard_and_rebatch_dataset"
        ),
        "npu_shim.npu_device.distribute.weight_update_grouping": "grouping_broadcast grouping_gradients_apply",
    },
)
