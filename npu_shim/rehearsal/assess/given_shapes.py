"""The shapes that a run or call really has: of what it is fed or passed, and of the next batch of its iterators."""

from __future__ import annotations

from typing import Hashable, Mapping, Sequence, Tuple

import numpy as np

from npu_shim._tensorflow import tf_api, tf_capture, tf_graph
from npu_shim._tensorflow.types import FeedDict, Function, Graph, Operation, Session, Tensor, Value
from npu_shim.rehearsal.assess.device_forms import is_collective
from npu_shim.rehearsal.assess.flat import Shape, reads_batch
from npu_shim.rehearsal.assess.training_ops import all_ops_with_functions

Feeds = Sequence[Tuple[Tensor, Value]]  # with their values

tf = tf_api.tf
_INTEGERS = (tf.int32, tf.int64, tf.bool)
_MOST_ELEMENTS = 10_000  # of the lengths of a batch


def feed_shapes(feeds: Feeds) -> tuple[Hashable, ...]:
    """Return the name and shape of each tensor that is fed."""
    return tuple((tensor.name, np.shape(value)) for tensor, value in feeds)


def fed_integers(feeds: Feeds) -> dict[str, Value]:
    """Return the fed integers and bools by the name of the tensor: shapes, loops and branches may depend on them."""
    return {
        tensor.name: np.asarray(value)
        for tensor, value in feeds
        if tensor.dtype in _INTEGERS and np.size(value) <= _MOST_ELEMENTS
    }


def read_iterator_shapes(
    session: Session, ops: list[Operation], feed_dict: FeedDict | None, run: Function
) -> tuple[dict[str, Shape], dict[str, Value]]:
    """Return the shapes and the integers of the next batch of each iterator behind a run, which is read for this."""
    given = _collective_shapes([op for op in _readers(session, ops) if is_collective(op)])
    outputs = [output for output in iterator_outputs(session, ops) if not output.shape.is_fully_defined()]
    integers: dict[str, Value] = {}
    if outputs:
        batch = list(zip(outputs, run(session, outputs, feed_dict)))
        given.update((output.name, tuple(np.shape(value))) for output, value in batch)
        integers = fed_integers(batch)
    return given, integers


def iterator_outputs(session: Session, ops: list[Operation]) -> list[Tensor]:
    """Return what a run reads from iterators."""
    readers = [op for op in _readers(session, ops) if not is_collective(op)]
    return [output for op in readers for output in op.outputs if output.dtype not in (tf.variant, tf.resource)]


def _readers(session: Session, ops: list[Operation]) -> list[Operation]:
    readers = [op for op in tf_graph.ops_with_ancestors(ops) if op.type in ("IteratorGetNext", "IteratorGetNextSync")]
    return [op for op in readers if session.graph.is_fetchable(op) and op.graph is session.graph]


def _collective_shapes(ops: list[Operation]) -> dict[str, Shape]:
    """Return the shapes of the results of collectives, which are those of the copies that the script goes on with."""
    return {
        output.name: tuple(consumer.outputs[0].shape.as_list())
        for op in ops
        for output in op.outputs
        for consumer in output.consumers()
        if consumer.type == "Identity" and consumer.outputs[0].shape.is_fully_defined()
    }


def given_arguments(
    graph: Graph, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[dict[str, Shape], dict[str, Value]]:
    """Return the shapes and integers that a tf.function is passed or captures, and those of the next batch."""
    passed = [(tensor, value) for tensor, value in _arguments(graph, args, kwargs) if tensor.dtype != tf.resource]
    captured = [(inner, outer) for outer, inner in getattr(graph, "captures", ())]
    iterators = iterators_among(args, kwargs)
    readers = [op for op in all_ops_with_functions(graph) if reads_batch(op.type, op.name)]
    for iterator in iterators[:1] if len(iterators) == 1 else ():
        batch = tf_capture.function_input_tensors(next(iterator))
        for op in readers:
            if [output.dtype for output in op.outputs] == [part.dtype for part in batch]:
                passed += zip(op.outputs, batch)
    integers = [(tensor, value) for tensor, value in passed + captured if tensor.dtype in _INTEGERS]
    return {tensor.name: tuple(value.shape) for tensor, value in passed}, fed_integers(
        [(tensor, value.numpy()) for tensor, value in integers if hasattr(value, "numpy")]
    )


def _arguments(graph: Graph, args: Sequence[Value], kwargs: Mapping[str, Value]) -> list[tuple[Tensor, Value]]:
    """Return the placeholders of the arguments of a tf.function with what it is passed."""
    captured = {id(inner) for _, inner in getattr(graph, "captures", ())}
    inputs = [tensor for tensor in graph.inputs if id(tensor) not in captured]
    values = [
        value
        for value in tf_capture.function_input_tensors((args, kwargs))
        if hasattr(value, "shape") and hasattr(value, "dtype")
    ]
    return list(zip(inputs, values)) if len(inputs) == len(values) else []


def iterators_among(args: Sequence[Value], kwargs: Mapping[str, Value]) -> list[Value]:
    """Return the iterators among the arguments of a tf.function."""
    types = tf_capture.iterator_types()
    return [value for value in tf.nest.flatten((args, kwargs)) if isinstance(value, types)]
