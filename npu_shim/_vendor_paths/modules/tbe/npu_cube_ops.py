"""The vendor's npu_bridge.tbe.npu_cube_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.ops.deformable_conv2d import deformable_conv2d, deformable_offsets_grad
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["deformable_conv2d", "deformable_offsets_grad"]
