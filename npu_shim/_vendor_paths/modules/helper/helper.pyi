"""The vendor's npu_bridge.helper.helper. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.library import get_gen_ops, version

__all__ = ["get_gen_ops", "version"]
