"""The vendor's npu_bridge.estimator.npu.npu_saver. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.training.saver import NPUBulkSaverBuilder, NPUSaver

__all__ = ["NPUBulkSaverBuilder", "NPUSaver"]
