"""The vendor's npu_bridge.estimator.npu.keras_to_npu. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.estimator.keras_to_npu import model_to_npu_estimator
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["model_to_npu_estimator"]
