"""The vendor's npu_bridge.npu_cpu. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""
