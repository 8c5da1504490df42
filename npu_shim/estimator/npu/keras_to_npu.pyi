"""The vendor's npu_bridge.estimator.npu.keras_to_npu. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.estimator.keras_to_npu import model_to_npu_estimator

__all__ = ["model_to_npu_estimator"]
