"""The vendor's npu_bridge.estimator.npu.npu_hook. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.estimator.hooks import NPUBroadcastGlobalVariablesHook
    from npu_shim.estimator.hooks import NPUCheckpointSaverHook
    from npu_shim.estimator.hooks import NPUOutputTensorHook
    from npu_shim.estimator.hooks import SetIterationsVarHook
    from npu_shim.estimator.hooks import TellMeStepOrLossHook
    from npu_shim.estimator.outfeed_hooks import NPUInfeedOutfeedSessionHook
    from npu_shim.estimator.outfeed_hooks import NPULogOutfeedSessionHook
    from npu_shim.estimator.outfeed_hooks import NPUShutDownHook

    broadcast_global_variables: Callable[..., Any]
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.estimator.hooks": (
            "NPUBroadcastGlobalVariablesHook NPUCheckpointSaverHook NPUOutputTensorHook SetIterationsVarHook "
            "TellMeStepOrLossHook"
        ),
        "npu_shim.estimator.outfeed_hooks": "NPUInfeedOutfeedSessionHook NPULogOutfeedSessionHook NPUShutDownHook",
        "not_yet:npu_hook": "broadcast_global_variables",
    })

__all__ = [
    "NPUBroadcastGlobalVariablesHook",
    "NPUCheckpointSaverHook",
    "NPUInfeedOutfeedSessionHook",
    "NPULogOutfeedSessionHook",
    "NPUOutputTensorHook",
    "NPUShutDownHook",
    "SetIterationsVarHook",
    "TellMeStepOrLossHook",
    "broadcast_global_variables",
]
