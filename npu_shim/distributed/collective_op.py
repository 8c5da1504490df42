"""A collective between CPU processes as a TensorFlow op: in graphs, in tf.function and eagerly.

It is one stateful op that calls the collective backend with NumPy arrays. In a graph it
waits for the other ranks on a thread of its own. A session needs no thread for it, so
any number of collectives may be under way, in another order on each rank.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Callable, List, Optional, Sequence, Tuple

import numpy as np

from npu_shim._tensorflow import tf_gradients, tf_graph, tf_numpy_function
from npu_shim._tensorflow.tf_api import tf
from npu_shim.distributed import backend, graph_consistency, groups
from npu_shim.distributed.collectives.process_group import ProcessGroup

Work = Callable[[ProcessGroup, str, List[np.ndarray]], List[np.ndarray]]
Result = Tuple[tf.DType, tf.TensorShape]
Tensors = Sequence[tf.Tensor]
# called with the kind, the group, the inputs, the results and their gradients
Gradient = Callable[[str, str, Tensors, Tensors, Tensors], List[Optional[tf.Tensor]]]

BITS = tf.uint16  # the type in which bfloat16 is sent, as NumPy has no bfloat16


def run_differentiable_op(
    kind: str, group: str, inputs: list[tf.Tensor], results: list[Result], work: Work, gradient: Gradient
) -> list[tf.Tensor]:
    """Return the results of a collective that has a gradient of its own.

    Args:
        kind: the operation.
        group: name of the group.
        inputs: tensors.
        results: types and static shapes of the results.
        work: runs the collective.
        gradient: a function of a module, as its gradient is registered once for each kind and group.
    """
    if not inputs:
        return []
    if tf_graph.is_in_plain_graph():
        received = run_op(kind, group, inputs, results, work)
        return tf_gradients.with_registered_gradients(
            received, inputs, _register_gradient(kind, group, len(received), gradient)
        )

    @tf.custom_gradient
    def differentiable(*tensors: tf.Tensor) -> tuple[tuple[tf.Tensor, ...], Callable[..., list[tf.Tensor | None]]]:
        outputs = tuple(run_op(kind, group, list(tensors), results, work))
        return outputs, lambda *dys: gradient(kind, group, tensors, outputs, dys)

    outputs = differentiable(*inputs)
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


@functools.lru_cache(maxsize=None)
def _register_gradient(kind: str, group: str, count: int, gradient: Gradient) -> str:
    """Return the name under which the gradient of a collective with ``count`` results in a group is registered."""
    name = f"NpuShim {kind} {group} {count} {gradient.__module__}.{gradient.__qualname__}"

    @tf.RegisterGradient(name)
    def registered(node: tf.Operation, *dys: tf.Tensor) -> list[tf.Tensor | None]:
        results, inputs = node.inputs[:count], node.inputs[count:]  # the op passes the inputs through for this gradient
        return [None] * count + gradient(kind, group, inputs, results, dys[:count])

    return name


def run_op(
    kind: str, group: str, inputs: list[tf.Tensor], results: list[Result], work: Work, is_common: bool = True
) -> list[tf.Tensor] | tf.Operation:
    """Return the tensors of a collective; its op if it has none.

    Args:
        kind: the operation.
        group: name of the group.
        inputs: tensors.
        results: their types and static shapes.
        work: runs the collective.
        is_common: True if every rank of the group builds this op.
    """
    members = groups.find_group(group)
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    operation = f"{kind} of {_types_text(inputs)}"
    names = "" if graph is None else ", ".join(tensor.name for tensor in inputs)
    identity = (
        graph_consistency.add_collective(graph, group, operation, names)
        if is_common
        else graph_consistency.CollectiveId(operation, None)
    )

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        process_group = backend.process_group(members.name, members.ranks)
        identity.check(process_group)
        return work(process_group, identity.key, [np.asarray(array) for array in arrays])

    sent = [tf.bitcast(t, BITS) if t.dtype == tf.bfloat16 else t for t in inputs]
    types = [BITS if dtype == tf.bfloat16 else dtype for dtype, _ in results]
    as_op = tf_numpy_function.add_array_function_op if graph is None else tf_numpy_function.add_background_function_op
    received = as_op(run, sent, types)
    if not results:
        return received
    finished = []
    for tensor, (dtype, shape) in zip(received if isinstance(received, (list, tuple)) else [received], results):
        tensor = tf.bitcast(tensor, tf.bfloat16) if dtype == tf.bfloat16 else tensor
        if graph is not None:
            tensor.set_shape(shape)
        finished.append(tensor)
    return finished


def as_tensors(values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Return the values as tensors."""
    return [tf.convert_to_tensor(value) for value in values]


def _types_text(inputs: list[tf.Tensor]) -> str:
    """Return the types. Static shapes may differ between ranks; the shapes are compared at run time."""
    counted = Counter(tensor.dtype.base_dtype.name for tensor in inputs)
    return (
        ", ".join(name if number == 1 else f"{number} {name}" for name, number in sorted(counted.items())) or "nothing"
    )
