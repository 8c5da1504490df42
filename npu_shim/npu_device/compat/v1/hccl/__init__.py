"""The vendor's npu_device.compat.v1.hccl. Generated; do not edit."""
