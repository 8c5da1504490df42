"""The vendor's npu_bridge.experimental.file_constant. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.library import file_constant

__all__ = ["file_constant"]
