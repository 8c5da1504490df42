"""Private parts of TensorFlow for captured graphs: fetches without a run, function bodies, registered statistics."""

from __future__ import annotations

import importlib
from typing import Callable, Sequence

import tensorflow as tf
from tensorflow.python.client import session as _session
from tensorflow.python.data.ops import iterator_ops as _iterator_ops
from tensorflow.python.framework import function_def_to_graph as _to_graph, ops as _ops
from tensorflow.python.profiler.internal import (
    flops_registry as flops_registry,
)  # for its effect: it registers formulas
from tensorflow.python.summary.writer.event_file_writer import EventFileWriter as EventFileWriter

from npu_shim._tensorflow.types import (
    DType,
    Fetches,
    Graph,
    GraphDef,
    Message,
    Session,
    Structure,
    Tensor,
    TensorShape,
    Value,
    Variable,
)

MAKE_CALLABLE = "_make_callable_from_options"  # of a session; Keras in graph mode runs its functions through it
HAS_FLOPS = frozenset(key.split(",")[0] for key in _ops._stats_registry._registry if key.endswith(",flops"))
EagerIterator: type = getattr(_iterator_ops, "OwnedIterator", _iterator_ops.Iterator)


def results_without_run(session: Session, fetches: Fetches, value: Callable[[Tensor], Value]) -> Structure:
    """Return what ``session.run(fetches)`` would return, with ``value(tensor)`` in the place of each tensor."""
    with session.graph.as_default():
        mapper = _session._FetchMapper.for_fetch(fetches)
    values = [None if isinstance(element, tf.Operation) else value(element) for element in mapper.unique_fetches()]
    return mapper.build_results(values)


def function_body(graph: Graph, name: str) -> Graph | None:
    """Return the graph of a function in the library of a graph, or None if there is no such function."""
    function = graph._get_function(name)
    if function is None and isinstance(getattr(graph, "outer_graph", None), tf.Graph):
        return function_body(graph.outer_graph, name)
    traced = getattr(function, "graph", None)
    if traced is not None:
        return traced
    definition = getattr(function, "definition", None)
    return None if definition is None else _to_graph.function_def_to_graph(definition)


def is_function(graph: Graph, op_type: str) -> bool:
    """Return True if an operator type is a function of a graph's library."""
    return bool(graph._is_function(op_type))


def captured_variable(graph: Graph, handle: Tensor) -> Variable | None:
    """Return the variable with this handle among those that the graph of a tf.function captures, or None."""
    for variable in getattr(graph, "variables", ()):
        if getattr(variable, "handle", None) is handle:
            return variable
    return None


def variable_type_and_shape(handle: Tensor) -> tuple[DType, TensorShape] | None:
    """Return the type and shape of the variable behind a resource; None if it is no variable."""
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    return tf.as_dtype(data.shape_and_type[0].dtype), tf.TensorShape(data.shape_and_type[0].shape)


def integer_value(handle: Tensor, dtype: DType, shape: TensorShape) -> Value | None:
    """Return the value of an integer variable of one element, such as a number of steps; None for others."""
    if not dtype.is_integer or shape.rank != 0 or not hasattr(handle, "numpy"):
        return None
    try:
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype).numpy()
    except tf.errors.FailedPreconditionError:  # it has no value yet
        return None


def flops_of_node(graph: Graph, node: Message) -> int | None:
    """Return the floating-point operations of a node by TensorFlow's profiler; None if it does not know them."""
    try:
        value = _ops.get_stats_for_node_def(graph, _pool_with_channels_last(node), "flops").value
    except (ValueError, TypeError, AttributeError, AssertionError):  # a shape that the formula needs is not known
        return None
    return None if value is None else int(value)


def _pool_with_channels_last(node: Message) -> Message:
    """Return a pool as with channels last, the only layout that the profiler accepts; its formulas know no layout."""
    if node.attr["data_format"].s != b"NCHW":
        return node
    moved = type(node)()
    moved.CopyFrom(node)
    moved.attr["data_format"].s = b"NHWC"
    return moved


def iterator_types() -> tuple[type, ...]:
    """Return the classes of the iterators that a tf.function takes as arguments."""
    classes = [getattr(_iterator_ops, name, None) for name in ("IteratorBase", "OwnedIterator", "IteratorV2")]
    return tuple(iterator for iterator in classes if isinstance(iterator, type))


def dataset_of_iterator(iterator: Value) -> Value | None:
    """Return the dataset that an iterator reads; None if it does not say."""
    return getattr(iterator, "_dataset", None)


def function_input_tensors(values: Structure) -> Sequence[Tensor]:
    """Return the tensors of values in the order in which a tf.function takes them, those inside iterators included."""
    return list(tf.nest.flatten(values, expand_composites=True))


def values_of_tensors(definition: GraphDef, names: Sequence[str]) -> list[Value]:
    """Return the values of tensors of a graph that reads nothing; [] if TensorFlow cannot compute them."""
    graph = import_into_new_graph(definition)
    with tf.compat.v1.Session(graph=graph) as session:
        try:  # not by Session.run, which may be replaced
            return list(session._run(None, [graph.get_tensor_by_name(name) for name in names], {}, None, None))
        except tf.errors.OpError:
            return []


def import_into_new_graph(definition: GraphDef) -> Graph:
    """Return a new graph with the nodes of a definition, whose shapes TensorFlow infers."""
    copied = type(definition)()
    copied.CopyFrom(definition)  # TensorFlow adds attributes to what it imports
    with tf.Graph().as_default() as graph:
        try:
            tf.import_graph_def(copied, name="")
        except tf.errors.NotFoundError:  # TensorFlow 1 registers the operators of contrib when it is imported
            if not tf.__version__.startswith("1."):
                raise
            importlib.import_module("tensorflow_core.contrib")
            tf.import_graph_def(copied, name="")
    return graph
