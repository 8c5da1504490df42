"""The vendor's npu_bridge.tbe.npu_vector_ops. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    lamb_apply_optimizer_assign: Callable[..., Any]
    lamb_apply_weight_assign: Callable[..., Any]
    PReLU: Callable[..., Any]
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "not_yet:npu_vector_ops": "lamb_apply_optimizer_assign lamb_apply_weight_assign PReLU",
    })

__all__ = [
    "PReLU",
    "lamb_apply_optimizer_assign",
    "lamb_apply_weight_assign",
]
