"""The vendor's npu_bridge.estimator.npu_unary_ops. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.ops.gelu import gelu
    from npu_shim.ops.generated import npu_unary_ops
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.ops.gelu": "gelu",
        "npu_shim.ops.generated": "npu_unary_ops",
    })

__all__ = [
    "gelu",
    "npu_unary_ops",
]
