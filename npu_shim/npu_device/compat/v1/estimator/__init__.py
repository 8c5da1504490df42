"""The vendor's npu_device.compat.v1.estimator. Generated; do not edit."""
