"""Optimizers for TensorFlow 2: ``npu.train.optimizer``."""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "npu_shim.npu_device.train.optimizer.npu_loss_scale_optimizer": (
            "NpuExperimentalLossScaleOptimizer NpuLossScaleOptimizer"
        )
    },
)
