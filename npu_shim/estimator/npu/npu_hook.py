"""The vendor's npu_bridge.estimator.npu.npu_hook. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.estimator.hooks import NPUBroadcastGlobalVariablesHook
from npu_shim.estimator.hooks import NPUCheckpointSaverHook
from npu_shim.estimator.hooks import NPUOutputTensorHook
from npu_shim.estimator.hooks import SetIterationsVarHook
from npu_shim.estimator.hooks import TellMeStepOrLossHook
from npu_shim.estimator.outfeed_hooks import NPUInfeedOutfeedSessionHook
from npu_shim.estimator.outfeed_hooks import NPULogOutfeedSessionHook
from npu_shim.estimator.outfeed_hooks import NPUShutDownHook
from npu_shim.ops.not_yet import functions as _functions

__all__ = [
    "NPUBroadcastGlobalVariablesHook",
    "NPUCheckpointSaverHook",
    "NPUInfeedOutfeedSessionHook",
    "NPULogOutfeedSessionHook",
    "NPUOutputTensorHook",
    "NPUShutDownHook",
    "SetIterationsVarHook",
    "TellMeStepOrLossHook",
]
globals().update(_functions("npu_hook"))
__all__ += list(_functions("npu_hook"))
