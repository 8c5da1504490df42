"""The vendor's npu_device.compat.v1.image. Generated; do not edit."""
