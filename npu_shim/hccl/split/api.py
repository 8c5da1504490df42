"""The vendor's npu_bridge.hccl.split.api. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.distributed.ranks import set_split_strategy_by_idx
from npu_shim.distributed.ranks import set_split_strategy_by_size

__all__ = [
    "set_split_strategy_by_idx",
    "set_split_strategy_by_size",
]
