"""The vendor's npu_bridge.estimator.npu.npu_estimator. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.estimator.npu_estimator import NPUEstimator
    from npu_shim.estimator.spec import NPUEstimatorSpec
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.estimator.npu_estimator": "NPUEstimator",
        "npu_shim.estimator.spec": "NPUEstimatorSpec",
    })

__all__ = [
    "NPUEstimator",
    "NPUEstimatorSpec",
]
