"""The vendor's npu_bridge.image.image_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.image_resize import decode_and_crop_and_resize_jpeg, decode_and_resize_jpeg

__all__ = ["decode_and_crop_and_resize_jpeg", "decode_and_resize_jpeg"]
