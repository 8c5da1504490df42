"""The vendor's npu_bridge.estimator.npu.npu_loss_scale_optimizer. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.optimizer.loss_scale_optimizer import NPULossScaleOptimizer

__all__ = [
    "NPULossScaleOptimizer",
]
