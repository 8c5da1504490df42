"""The vendor's npu_bridge._api.experimental. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.experimental.get_shape import getshape
from npu_shim.experimental.image import decode_image

__all__ = ["decode_image", "getshape"]
