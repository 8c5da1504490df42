"""The vendor's npu_bridge._api. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""
