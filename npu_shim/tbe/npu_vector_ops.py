"""The vendor's npu_bridge.tbe.npu_vector_ops. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.ops.not_yet import functions as _functions

__all__ = [
]
globals().update(_functions("npu_vector_ops"))
__all__ += list(_functions("npu_vector_ops"))
