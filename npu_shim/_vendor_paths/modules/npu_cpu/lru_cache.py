"""The vendor's npu_bridge.npu_cpu.lru_cache. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.ops.lru_cache import LruCache
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["LruCache"]
