"""The vendor's npu_device.compat.v1.profiler. Generated; do not edit."""
