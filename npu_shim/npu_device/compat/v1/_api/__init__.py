"""The vendor's npu_device.compat.v1._api. Generated; do not edit."""
