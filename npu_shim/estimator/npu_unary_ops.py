"""The vendor's npu_bridge.estimator.npu_unary_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.ops.gelu import gelu
    from npu_shim.ops.unary_ops import npu_unary_ops
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["gelu", "npu_unary_ops"]
