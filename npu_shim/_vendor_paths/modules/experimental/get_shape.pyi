"""The vendor's npu_bridge.experimental.get_shape. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.library import getshape

__all__ = ["getshape"]
