"""The vendor's npu_bridge.npu_cpu.lru_cache. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.lru_cache import LruCache

__all__ = ["LruCache"]
