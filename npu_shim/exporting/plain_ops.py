"""Write ops that converters do not know as a person writes them: gelu, layer normalization of Keras 2, buckets."""

from __future__ import annotations

import math
from typing import Callable

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import GraphDef, Message, Tensor, Value
from npu_shim.exporting import graph_defs
from npu_shim.exporting.numbers import constant_numbers

tf, v1 = tf_api.tf, tf_api.v1
_SHIM_GELU = (b"NpuShimGelu", b"NpuShimGeluWithSlope")
_VENDOR_GELU = ("Gelu", "FastGelu", "FastGeluV2")


def replace_by_plain_ops(graph: GraphDef, for_onnx: bool) -> graph_defs.Notes:
    """Replace ops in place.

    Args:
        graph: nodes.
        for_onnx: True for ops that tf2onnx does not have, too.
    Returns:
        Lines that say what was replaced.
    """
    lines, nodes, known = {}, graph_defs.nodes_by_name(graph), constant_numbers(graph)
    for node in list(graph.node):
        is_own = node.op == "IdentityN" and graph_defs.attribute_or_default(node, "_gradient_op_type") in _SHIM_GELU
        if is_own or node.op in _VENDOR_GELU:
            _set_result(graph, node, _gelu)
            lines["gelu is written with TensorFlow's ops"] = True
        elif _is_layer_norm(nodes, known, node):
            _set_result(graph, node, _layer_norm, graph_defs.attribute_or_default(node, "epsilon", 1e-4))
            lines["layer normalization is written without batch normalization"] = True
        elif node.op == "Bucketize" and for_onnx:
            _set_result(graph, node, _bucket_indices, list(graph_defs.attribute_or_default(node, "boundaries").f))
            lines["buckets are counted by comparisons"] = True
    return list(lines)


def _gelu(x: Tensor) -> Tensor:
    return x * (0.5 * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3.0)))))


def _layer_norm(x: Tensor, epsilon: float) -> Tensor:
    mean = tf.reduce_mean(x, [2, 3], keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), [2, 3], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + epsilon)


def _bucket_indices(x: Tensor, borders: list[float]) -> Tensor:
    x = x if x.dtype == tf.float64 else tf.cast(x, tf.float32)
    return tf.reduce_sum(tf.cast(x[..., None] >= tf.constant(borders, x.dtype), tf.int32), -1)


def _is_layer_norm(nodes: dict[str, Message], constants: dict[str, Value], node: Message) -> bool:
    """Return True for a batch normalization of a batch of one whose channels are the rows, as Keras 2 has it."""
    if not graph_defs.is_training_batch_norm(node) or graph_defs.attribute_or_default(node, "data_format") != b"NCHW":
        return False
    x, scale, offset = (nodes[graph_defs.split_tensor_name(tensor)[0]] for tensor in node.input[:3])
    if x.op != "Reshape" or graph_defs.attribute_or_default(node, "T") != tf.float32.as_datatype_enum:
        return False
    shape = nodes[graph_defs.split_tensor_name(x.input[1])[0]]
    shape = graph_defs.constant_value(
        nodes[graph_defs.split_tensor_name(shape.input[0])[0]] if shape.op == "Pack" else shape
    )
    is_plain = (constants.get(scale.name), constants.get(offset.name)) == (1.0, 0.0)
    return is_plain and shape is not None and bool(shape.reshape(-1)[0] == 1)


def _set_result(graph: GraphDef, node: Message, function: Callable[..., Tensor], *arguments: object) -> None:
    """Make a node the result of a function of its input; its name stays."""
    x, dtype = node.input[node.op == "IdentityN"], node.attr["T"].type or node.attr["T"].list.type[0]
    with tf.Graph().as_default() as function_graph:
        result = function(v1.placeholder(dtype, name="x"), *arguments)
    for op in function_graph.as_graph_def().node[1:]:
        new = graph.node.add()
        new.CopyFrom(op)
        new.name = f"{node.name}/{op.name}"
        new.input[:] = [x if name == "x" else f"{node.name}/{name}" for name in op.input]
        if not new.input:  # in a loop of TensorFlow 1, all inputs are of the loop
            new.input.append(graph_defs.join_tensor_name(graph_defs.split_tensor_name(x)[0], graph_defs.CONTROL))
    graph_defs.set_identity(node, f"{node.name}/{result.op.name}", result.dtype)
