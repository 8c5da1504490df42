"""The vendor's npu_device.compat.v1.estimator.npu. Generated; do not edit."""
