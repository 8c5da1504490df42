"""The vendor's npu_bridge.estimator.npu_unary_ops. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.ops.gelu import gelu
from npu_shim.ops.generated import npu_unary_ops

__all__ = [
    "gelu",
    "npu_unary_ops",
]
