"""Write the ops of npu_shim and of the vendor's package with TensorFlow's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from npu_shim._tensorflow import tf_api
from npu_shim.exporting.nodes import add, attribute, constant, set_identity

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import GraphDef

tf = tf_api.tf
_GELU = (b"NpuShimGelu", b"NpuShimGeluWithSlope")
_VENDOR_GELU = ("Gelu", "FastGelu", "FastGeluV2")


def write_plain(graph: GraphDef) -> int:
    """Replace gelu in place; return the number of them.

    gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as a person writes it, so that converters know it.
    """
    number = 0
    for node in list(graph.node):
        if node.op == "IdentityN" and attribute(node, "_gradient_op_type") in _GELU:
            x, dtype = node.input[1], tf.as_dtype(node.attr["T"].list.type[0])
        elif node.op in _VENDOR_GELU:
            x, dtype = node.input[0], tf.as_dtype(node.attr["T"].type)
        else:
            continue
        set_identity(node, _gelu(graph, node.name, x, dtype), dtype)
        number += 1
    return number


def _gelu(graph: GraphDef, scope: str, x: str, dtype: Any) -> str:
    def apply(op: str, *inputs: str) -> str:
        return add(graph, op, f"{scope}/{op.lower()}", inputs, T=dtype)

    def number(value: float) -> str:
        return constant(graph, f"{scope}/number", value, dtype, x)

    cube = apply("Pow", x, number(3.0))
    inner = apply("Add", x, apply("Mul", number(0.044715), cube))
    tanh = apply("Tanh", apply("Mul", number(math.sqrt(2 / math.pi)), inner))
    return apply("Mul", x, apply("Mul", number(0.5), apply("Add", number(1.0), tanh)))
