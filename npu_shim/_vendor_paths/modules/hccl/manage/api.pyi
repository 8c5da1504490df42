"""The vendor's npu_bridge.hccl.manage.api. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.distributed.ranks import (
    create_group, destroy_group, get_group_rank_from_world_rank, get_local_rank_id, get_local_rank_size, get_rank_id,
    get_rank_size, get_world_rank_from_group_rank,
)

__all__ = [
    "create_group", "destroy_group", "get_group_rank_from_world_rank", "get_local_rank_id", "get_local_rank_size",
    "get_rank_id", "get_rank_size", "get_world_rank_from_group_rank",
]
