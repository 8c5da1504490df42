"""The vendor's npu_bridge.estimator.npu.npu_loss_scale_manager. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.optimizer.loss_scale_manager import ExponentialUpdateLossScaleManager, FixedLossScaleManager
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["ExponentialUpdateLossScaleManager", "FixedLossScaleManager"]
