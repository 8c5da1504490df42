"""The vendor's npu_bridge.profiler.profiler. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.ops.host_contexts import Profiler

__all__ = [
    "Profiler",
]
