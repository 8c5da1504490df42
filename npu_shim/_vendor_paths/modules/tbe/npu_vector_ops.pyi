"""The vendor's npu_bridge.tbe.npu_vector_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.graph_operators import lamb_apply_optimizer_assign, lamb_apply_weight_assign
from npu_shim.ops.prelu_layer import PReLU

__all__ = ["PReLU", "lamb_apply_optimizer_assign", "lamb_apply_weight_assign"]
