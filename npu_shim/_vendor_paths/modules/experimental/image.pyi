"""The vendor's npu_bridge.experimental.image. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.library import decode_image

__all__ = ["decode_image"]
