"""The vendor's npu_device.compat.v1.helper. Generated; do not edit."""
