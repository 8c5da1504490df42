"""The vendor's npu_bridge.npu_cpu.npu_cpu_ops. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.ops.not_yet import functions as _functions

__all__ = [
]
globals().update(_functions("npu_cpu_ops"))
__all__ += list(_functions("npu_cpu_ops"))
