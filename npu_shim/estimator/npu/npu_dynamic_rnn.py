"""The vendor's npu_bridge.estimator.npu.npu_dynamic_rnn. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    DynamicGRUV2: Callable[..., Any]
    DynamicAUGRU: Callable[..., Any]
    DynamicRNN: Callable[..., Any]
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "not_yet:npu_dynamic_rnn": "DynamicGRUV2 DynamicAUGRU DynamicRNN",
    })

__all__ = [
    "DynamicAUGRU",
    "DynamicGRUV2",
    "DynamicRNN",
]
