"""The vendor's npu_bridge.estimator.npu.npu_callbacks. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.training.broadcasting import broadcast_global_variables
from npu_shim.training.callbacks import BroadcastGlobalVariablesCallbackImpl, NPUBroadcastGlobalVariablesCallback

__all__ = ["BroadcastGlobalVariablesCallbackImpl", "NPUBroadcastGlobalVariablesCallback", "broadcast_global_variables"]
