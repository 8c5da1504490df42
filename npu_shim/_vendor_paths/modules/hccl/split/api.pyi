"""The vendor's npu_bridge.hccl.split.api. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.distributed.ranks import set_split_strategy_by_idx, set_split_strategy_by_size

__all__ = ["set_split_strategy_by_idx", "set_split_strategy_by_size"]
