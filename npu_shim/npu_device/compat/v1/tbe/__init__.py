"""The vendor's npu_device.compat.v1.tbe. Generated; do not edit."""
