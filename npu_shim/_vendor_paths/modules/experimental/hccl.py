"""The vendor's npu_bridge.experimental.hccl. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.ops.library import c_str, get_actual_rank_size, get_user_rank_id, get_user_rank_size
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["c_str", "get_actual_rank_size", "get_user_rank_id", "get_user_rank_size"]
