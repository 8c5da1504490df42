"""The vendor's npu_bridge.estimator.npu.npu_hook. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.estimator.hooks import (
    NPUCheckpointSaverHook, NPUOutputTensorHook, SetIterationsVarHook, TellMeStepOrLossHook,
)
from npu_shim.estimator.outfeed_hooks import NPUInfeedOutfeedSessionHook, NPULogOutfeedSessionHook, NPUShutDownHook
from npu_shim.training.broadcasting import NPUBroadcastGlobalVariablesHook, broadcast_global_variables

__all__ = [
    "NPUBroadcastGlobalVariablesHook", "NPUCheckpointSaverHook", "NPUInfeedOutfeedSessionHook",
    "NPULogOutfeedSessionHook", "NPUOutputTensorHook", "NPUShutDownHook", "SetIterationsVarHook",
    "TellMeStepOrLossHook", "broadcast_global_variables",
]
