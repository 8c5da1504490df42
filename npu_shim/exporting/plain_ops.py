"""Write the ops of npu_shim and of the vendor's package, and Keras' layer normalization, as plain ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from npu_shim._tensorflow import tf_api
from npu_shim.exporting.nodes import (
    add,
    attribute,
    by_name,
    constant,
    constant_value,
    data_inputs,
    is_of_training,
    set_identity,
    split,
)

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import GraphDef

tf = tf_api.tf
_GELU = (b"NpuShimGelu", b"NpuShimGeluWithSlope")
_VENDOR_GELU = ("Gelu", "FastGelu", "FastGeluV2")


def write_plain(graph: GraphDef) -> list[str]:
    """Replace gelu and layer normalization in place, as a person writes them, so that converters know them.

    gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))

    Returns:
        Lines that say what was replaced.
    """
    gelus, norms, nodes = 0, 0, by_name(graph)
    for node in list(graph.node):
        if _is_layer_norm(nodes, node):
            set_identity(node, _layer_norm(graph, node), tf.float32)
            norms += 1
            continue
        if node.op == "IdentityN" and attribute(node, "_gradient_op_type") in _GELU:
            x, dtype = node.input[1], tf.as_dtype(node.attr["T"].list.type[0])
        elif node.op in _VENDOR_GELU:
            x, dtype = node.input[0], tf.as_dtype(node.attr["T"].type)
        else:
            continue
        set_identity(node, _gelu(graph, node.name, x, dtype), dtype)
        gelus += 1
    lines = ["gelu is written with TensorFlow's ops"] * (gelus > 0)
    return lines + ["layer normalization is written without batch normalization"] * (norms > 0)


def _is_layer_norm(nodes: dict[str, Any], node: Any) -> bool:
    """Return True for a batch normalization of a batch of one whose channels are the rows, as Keras 2 has it."""
    if not is_of_training(node) or attribute(node, "data_format") != b"NCHW":
        return False
    x, *filled = (nodes[split(each)[0]] for each in node.input[:3])
    if x.op != "Reshape" or attribute(node, "T") != tf.float32.as_datatype_enum:
        return False
    shape = nodes[split(x.input[1])[0]]
    shape = constant_value(nodes[split(shape.input[0])[0]] if shape.op == "Pack" else shape)
    scale, offset = (
        constant_value(nodes[split(data_inputs(each)[1])[0]] if each.op == "Fill" else each) for each in filled
    )
    if shape is None or scale is None or offset is None:
        return False
    return bool(shape.reshape(-1)[0] == 1 and (scale == 1).all() and (offset == 0).all())


def _layer_norm(graph: GraphDef, node: Any) -> str:
    x, scope = node.input[0], f"{node.name}/rows"
    axes = constant(graph, f"{scope}/axes", [2, 3], tf.int32, x)

    def mean(value: str) -> str:
        return add(graph, "Mean", f"{scope}/mean", [value, axes], T=tf.float32, Tidx=tf.int32, keep_dims=True)

    def apply(op: str, *inputs: str) -> str:
        return add(graph, op, f"{scope}/{op.lower()}", inputs, T=tf.float32)

    center = mean(x)
    variance = mean(apply("SquaredDifference", x, center))
    epsilon = constant(graph, f"{scope}/epsilon", attribute(node, "epsilon", 1e-4), tf.float32, x)
    return apply("Mul", apply("Sub", x, center), apply("Rsqrt", apply("Add", variance, epsilon)))


def _gelu(graph: GraphDef, scope: str, x: str, dtype: Any) -> str:
    def apply(op: str, *inputs: str) -> str:
        return add(graph, op, f"{scope}/{op.lower()}", inputs, T=dtype)

    def number(value: float) -> str:
        return constant(graph, f"{scope}/number", value, dtype, x)

    cube = apply("Pow", x, number(3.0))
    inner = apply("Add", x, apply("Mul", number(0.044715), cube))
    tanh = apply("Tanh", apply("Mul", number(math.sqrt(2 / math.pi)), inner))
    return apply("Mul", x, apply("Mul", number(0.5), apply("Add", number(1.0), tanh)))
