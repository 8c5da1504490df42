"""Functions of a graph's library, and ops that compile them with XLA."""

from __future__ import annotations

from typing import Callable, Sequence

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import function as _function

from npu_shim._tensorflow.tf_graph import attr_value, set_op_attr
from npu_shim._tensorflow.types import DType, GraphFunction, Tensor

v1 = tf.compat.v1


def trace_graph_function(function: Callable[..., Tensor], types: Sequence[DType]) -> GraphFunction:
    """Trace a function of tensors as a function of a graph's library, to call it or for call_compiled.

    It is traced in its own graph. Therefore it has no device, scope or control dependency of its first call site.
    """
    traced = _function.Defun(*types, noinline=True)(function)
    with tf.Graph().as_default() as graph:
        traced.add_to_graph(graph)
    return traced


def call_compiled(function: GraphFunction, inputs: Sequence[Tensor], constants: int = 0) -> Tensor:
    """Add the op that compiles a traced graph function and runs it, and return its one result, whose shape is unknown.

    TensorFlow 2 compiles a call with the attribute _XlaMustCompile. A TensorFlow built without XLA runs the function's
    own ops, so a graph with such a call loads everywhere. TensorFlow 1.15 does not know the attribute; its op for this
    is XlaLaunch. Defun(compiled=True) is different in both: it marks the call for the clustering pass, which also
    compiles the ops around it.

    Args:
        function: from trace_graph_function.
        inputs: tensors for the function.
        constants: number of leading inputs that are compile-time constants.
    """
    if not tf.__version__.startswith("1."):
        if v1.executing_eagerly_outside_functions() and not _context.context().has_function(function.name):
            _context.context().add_function_def(function.definition)  # Defun does this for graphs only
        result = function(*inputs)
        # not by attr_scope: loops and branches add ops that carry inputs in
        set_op_attr(result.op, "_XlaMustCompile", True)
        return result
    graph = v1.get_default_graph()
    function.add_to_graph(graph)
    result_type = function.definition.signature.output_arg[0].type
    list_value = attr_value_pb2.AttrValue.ListValue
    dtypes = [x.dtype.as_datatype_enum for x in inputs]
    return graph.create_op(
        "XlaLaunch",
        list(inputs),
        [tf.as_dtype(result_type)],
        attrs={
            "function": attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name=function.name)),
            "Tconstants": attr_value_pb2.AttrValue(list=list_value(type=dtypes[:constants])),
            "Targs": attr_value_pb2.AttrValue(list=list_value(type=dtypes[constants:])),
            "Nresources": attr_value(0),
            "Tresults": attr_value_pb2.AttrValue(list=list_value(type=[result_type])),
        },
    ).outputs[0]


def eager_global_seed() -> int | None:
    """Return the seed of tf.random.set_seed in eager code; None without one. Unlike get_seed() it draws no number."""
    seed: int | None = _context.global_seed()
    return seed
