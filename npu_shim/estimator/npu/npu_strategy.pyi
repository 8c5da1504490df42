"""The vendor's npu_bridge.estimator.npu.npu_strategy. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.training.strategy import NPUExtended, NPUStrategy

__all__ = ["NPUExtended", "NPUStrategy"]
