"""The vendor's npu_bridge.hccl.split.api. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.distributed.ranks import set_split_strategy_by_idx, set_split_strategy_by_size
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["set_split_strategy_by_idx", "set_split_strategy_by_size"]
