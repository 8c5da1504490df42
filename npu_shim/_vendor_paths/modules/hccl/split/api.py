"""The vendor's npu_bridge.hccl.split.api. Generated from npu_shim/_vendor_paths/table.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._host.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from npu_shim.distributed.ranks import set_split_strategy_by_idx, set_split_strategy_by_size
else:
    __getattr__, __dir__ = _lazy_names(__name__, {
        "npu_shim.distributed.ranks": "set_split_strategy_by_idx set_split_strategy_by_size",
    })

__all__ = ["set_split_strategy_by_idx", "set_split_strategy_by_size"]
