"""The vendor's npu_bridge.estimator.npu.npu_callbacks. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.training.callbacks import NPUBroadcastGlobalVariablesCallback

    broadcast_global_variables: Callable[..., Any]
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.training.callbacks": "NPUBroadcastGlobalVariablesCallback",
        "not_yet:npu_callbacks": "broadcast_global_variables",
    })

__all__ = [
    "NPUBroadcastGlobalVariablesCallback",
    "broadcast_global_variables",
]
