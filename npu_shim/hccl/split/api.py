"""The vendor's npu_bridge.hccl.split.api. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.distributed.ranks import set_split_strategy_by_idx
    from npu_shim.distributed.ranks import set_split_strategy_by_size
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.distributed.ranks": "set_split_strategy_by_idx set_split_strategy_by_size",
    })

__all__ = [
    "set_split_strategy_by_idx",
    "set_split_strategy_by_size",
]
