"""The vendor's npu_bridge.tbe.npu_cube_ops. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    deformable_conv2d: Callable[..., Any]
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "not_yet:npu_cube_ops": "deformable_conv2d",
    })

__all__ = [
    "deformable_conv2d",
]
