"""The vendor's npu_bridge.estimator.npu.npu_loss_scale_optimizer. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.optimizer.loss_scale_manager import FixedLossScaleManager
from npu_shim.optimizer.loss_scale_optimizer import NPULossScaleOptimizer

__all__ = ["FixedLossScaleManager", "NPULossScaleOptimizer"]
