"""The vendor's npu_bridge.experimental.hccl. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.library import c_str, get_actual_rank_size, get_user_rank_id, get_user_rank_size

__all__ = ["c_str", "get_actual_rank_size", "get_user_rank_id", "get_user_rank_size"]
