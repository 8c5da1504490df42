"""The vendor's npu_bridge.estimator.npu.npu_callbacks. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.training.broadcasting import broadcast_global_variables
    from npu_shim.training.callbacks import BroadcastGlobalVariablesCallbackImpl, NPUBroadcastGlobalVariablesCallback
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["BroadcastGlobalVariablesCallbackImpl", "NPUBroadcastGlobalVariablesCallback", "broadcast_global_variables"]
