"""The vendor's npu_bridge.image.image_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.ops.image_resize import decode_and_crop_and_resize_jpeg, decode_and_resize_jpeg
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["decode_and_crop_and_resize_jpeg", "decode_and_resize_jpeg"]
