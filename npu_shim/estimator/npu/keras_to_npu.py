"""The vendor's npu_bridge.estimator.npu.keras_to_npu. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.estimator.keras_to_npu import model_to_npu_estimator

__all__ = [
    "model_to_npu_estimator",
]
