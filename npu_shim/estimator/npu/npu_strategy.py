"""The vendor's npu_bridge.estimator.npu.npu_strategy. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.distributed.strategy import NPUStrategy

__all__ = [
    "NPUStrategy",
]
