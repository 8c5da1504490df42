"""The vendor's npu_bridge.estimator.npu_unary_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.gelu import gelu
from npu_shim.ops.unary_ops import npu_unary_ops

__all__ = ["gelu", "npu_unary_ops"]
