"""The vendor's npu_device.compat.v1.experimental. Generated; do not edit."""
