"""The vendor's npu_bridge.estimator.npu.npu_estimator. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim._tensorflow.tf_estimator import no_check_override
from npu_shim.estimator.npu_estimator import NPUEstimator
from npu_shim.estimator.spec import NPUEstimatorSpec

__all__ = ["NPUEstimator", "NPUEstimatorSpec", "no_check_override"]
