"""The vendor's npu_bridge.estimator.npu.npu_estimator. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.estimator.npu_estimator import NPUEstimator
from npu_shim.estimator.spec import NPUEstimatorSpec

__all__ = [
    "NPUEstimator",
    "NPUEstimatorSpec",
]
