"""The vendor's npu_device.compat.v1.npu_cpu. Generated; do not edit."""
