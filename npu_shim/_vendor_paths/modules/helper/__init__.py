"""The vendor's npu_bridge.helper. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""
