"""The vendor's npu_bridge.tbe.npu_cube_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.deformable_conv2d import deformable_conv2d, deformable_offsets_grad

__all__ = ["deformable_conv2d", "deformable_offsets_grad"]
