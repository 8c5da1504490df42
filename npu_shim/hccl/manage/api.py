"""The vendor's npu_bridge.hccl.manage.api. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.distributed.ranks import create_group
    from npu_shim.distributed.ranks import destroy_group
    from npu_shim.distributed.ranks import get_group_rank_from_world_rank
    from npu_shim.distributed.ranks import get_local_rank_id
    from npu_shim.distributed.ranks import get_local_rank_size
    from npu_shim.distributed.ranks import get_rank_id
    from npu_shim.distributed.ranks import get_rank_size
    from npu_shim.distributed.ranks import get_world_rank_from_group_rank
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.distributed.ranks": (
            "create_group destroy_group get_group_rank_from_world_rank get_local_rank_id get_local_rank_size "
            "get_rank_id get_rank_size get_world_rank_from_group_rank"
        ),
    })

__all__ = [
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_local_rank_id",
    "get_local_rank_size",
    "get_rank_id",
    "get_rank_size",
    "get_world_rank_from_group_rank",
]
