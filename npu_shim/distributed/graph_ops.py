"""Collectives between CPU processes as TensorFlow ops: in graphs, in tf.function and eagerly.

Each is one stateful op that calls the collective backend with NumPy arrays. It
blocks its thread until the other ranks reach the collective, so session_config
gives a session more threads than collectives that can wait for each other.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Any, Callable, List, Sequence, Tuple

import numpy as np

from npu_shim import _tf, _tf_gradients, _tf_graph, _tf_numpy_function
from npu_shim._tf import tf
from npu_shim.distributed import backend, collectives, graph_consistency, groups

if TYPE_CHECKING:
    from npu_shim.distributed.collectives import ProcessGroup

    Work = Callable[[ProcessGroup, str, List[np.ndarray]], List[np.ndarray]]
    Result = Tuple[tf.DType, tf.TensorShape]

_SUM = "allreduce sum"
_BITS = tf.uint16  # the type in which bfloat16 is sent, as NumPy has no bfloat16


def allreduce(tensors: Sequence[tf.Tensor], reduction: str, group: str) -> list[tf.Tensor]:
    """Reduce tensors of one type over the ranks of a group, in one collective.

    The gradient of a sum is the sum of the gradients over the same group. The NPU
    also sums the gradients of other reductions (over all ranks of the world), which
    is not their derivative, so these reductions have no gradient here.

    Args:
        tensors: of any shapes.
        reduction: 'sum', 'prod', 'max' or 'min'.
        group: name of the group.
    Returns:
        Tensors of the same shapes.
    """

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return process_group.allreduce(arrays, reduction, key=key, type_name=type_name)

    inputs = _tensors(tensors)
    type_name = _type_name(inputs)
    return _op(f"allreduce {reduction}", group, inputs, [(t.dtype, t.shape) for t in inputs], work)


def reduce(tensor: tf.Tensor, reduction: str, root: int, group: str) -> tf.Tensor:
    """Reduce a tensor to rank ``root`` of the group; other ranks get their own tensor back."""
    inputs = _tensors([tensor])
    type_name = _type_name(inputs)

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        made = process_group.reduce(arrays[0], reduction, root=root, key=key, type_name=type_name)
        return [made if process_group.rank == root else made.copy()]  # TensorFlow must not get its own input back

    return _op(f"reduce {reduction} to rank {root}", group, inputs, [(inputs[0].dtype, inputs[0].shape)], work)[0]


def reduce_scatter(tensor: tf.Tensor, reduction: str, group: str) -> tf.Tensor:
    """Reduce a tensor; rank r of the group gets block r of axis 0."""
    inputs = _tensors([tensor])
    type_name = _type_name(inputs)
    size = groups.group(group).size
    shape = inputs[0].shape
    if shape.rank is not None:
        first = _tf.v1.dimension_value(shape[0]) if shape.rank else None
        if shape.rank == 0 or (first is not None and first % size):
            raise ValueError(
                f"hccl_ops.reduce_scatter: a tensor of shape {shape} cannot be scattered over {size} "
                f"ranks. Make axis 0 a multiple of {size}."
            )
        shape = tf.TensorShape([None if first is None else first // size]).concatenate(shape[1:])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.reduce_scatter(arrays[0], reduction, key=key, type_name=type_name)]

    return _op(f"reduce_scatter {reduction}", group, inputs, [(inputs[0].dtype, shape)], work)[0]


def allgather(tensor: tf.Tensor, group: str) -> tf.Tensor:
    """Concatenate the tensors of a group's ranks along axis 0; a scalar counts as [1]."""
    inputs = _tensors([tensor])
    shape, size = inputs[0].shape, groups.group(group).size
    if shape.rank is not None:
        first = _tf.v1.dimension_value(shape[0]) if shape.rank else 1
        shape = tf.TensorShape([None if first is None else first * size]).concatenate(shape[1:])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.allgather(arrays[0], key=key)]

    return _op("allgather", group, inputs, [(inputs[0].dtype, shape)], work)[0]


def broadcast(tensors: Sequence[tf.Tensor], root: int, group: str) -> list[tf.Tensor]:
    """Copy the tensors, of any types, of rank ``root`` of the group to every rank."""
    inputs = _tensors(tensors)

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        made = process_group.broadcast(arrays, root=root, key=key)
        return [array.copy() for array in made] if process_group.rank == root else made

    return _op(f"broadcast from rank {root}", group, inputs, [(t.dtype, t.shape) for t in inputs], work)


def send(tensor: tf.Tensor, tag: int, dest: int, group: str) -> tf.Operation | None:
    """Send a tensor to a rank of the group. Return an op that ends when it is received; None if eager."""
    inputs = _tensors([tensor])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        process_group.send(arrays[0], dest=dest, tag=tag)
        return []

    made = _call("send", group, inputs, [], work, is_common=False)
    return made if isinstance(made, tf.Operation) else None


def receive(shape: Sequence[int], dtype: tf.DType, tag: int, source: int, group: str) -> tf.Tensor:
    """Receive the tensor that a rank of the group sends with the same tag."""
    numpy_type = (_BITS if dtype == tf.bfloat16 else dtype).as_numpy_dtype

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.receive(tuple(shape), numpy_type, source=source, tag=tag)]

    return _call("receive", group, [], [(dtype, tf.TensorShape(shape))], work, is_common=False)[0]


def all_to_all_v(tensors: Sequence[tf.Tensor], group: str) -> tf.Tensor:
    """Send a segment of a flat tensor to each rank.

    Args:
        tensors: data, send counts, send displacements, receive counts, receive displacements.
        group: name of the group.
    """
    inputs = _tensors(tensors[:1]) + [tf.cast(t, tf.int64) for t in tensors[1:]]
    counts = _tf.static_value(inputs[3])
    shape = tf.TensorShape([None if counts is None else int(counts.sum())])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.alltoallv(*arrays, key=key)]

    return _op("alltoallv", group, inputs, [(inputs[0].dtype, shape)], work)[0]


def all_to_all_v_c(data: tf.Tensor, counts: tf.Tensor, group: str) -> tf.Tensor:
    """Send a segment of a flat tensor to each rank, with the counts of all ranks as a matrix."""
    inputs = _tensors([data]) + [tf.cast(counts, tf.int64)]

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.alltoallvc(*arrays, key=key)]

    return _op("alltoallvc", group, inputs, [(inputs[0].dtype, tf.TensorShape([None]))], work)[0]


def _op(kind: str, group: str, inputs: list[tf.Tensor], results: list[Result], work: Work) -> list[tf.Tensor]:
    """Return the results of a collective that has its gradient registered."""
    if not inputs:
        return []
    if _tf_graph.in_plain_graph():
        return _tf_gradients.with_gradients(_call(kind, group, inputs, results, work), inputs, _registered(kind, group))

    @tf.custom_gradient
    def differentiable(*tensors: tf.Tensor) -> tuple[tuple[tf.Tensor, ...], Callable[..., list[tf.Tensor]]]:
        outputs = _call(kind, group, list(tensors), results, work)
        return tuple(outputs), lambda *dys, **unused: _gradient(kind, group, dys)

    outputs = differentiable(*inputs)
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


@functools.lru_cache(maxsize=None)
def _registered(kind: str, group: str) -> str:
    """Return the name under which the gradient of a collective in a group is registered."""
    name = f"NpuShim {kind} {group}"

    @tf.RegisterGradient(name)
    def gradient(op: tf.Operation, *dys: tf.Tensor) -> list[tf.Tensor | None]:
        count = len(dys) // 2  # the results, then the inputs, which the op passes through for this gradient
        return [None] * count + _gradient(kind, group, dys[:count])

    return name


def _gradient(kind: str, group: str, dys: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Return the gradients of a sum's inputs.

    Raises:
        LookupError: for any other collective.
    """
    if kind == _SUM:
        return allreduce(dys, "sum", group)
    reason = (
        "the NPU sums over all ranks, which is not the derivative"
        if kind.startswith("allreduce")
        else "the NPU has none either"
    )
    raise LookupError(
        f"hccl_ops: {kind} has no gradient: {reason}. Wrap its result in tf.stop_gradient if the loss does not depend "
        "on it."
    )


def _call(
    kind: str, group: str, inputs: list[tf.Tensor], results: list[Result], work: Work, is_common: bool = True
) -> Any:
    """Return the tensors of a collective; its op if it has none.

    Args:
        kind: the operation.
        group: name of the group.
        inputs: tensors.
        results: their types and static shapes.
        work: runs the collective.
        is_common: True if every rank of the group builds this op.
    """
    members = groups.group(group)
    graph = None if tf.executing_eagerly() else _tf.v1.get_default_graph()
    operation = f"{kind} of {_types(inputs)}"
    names = "" if graph is None else ", ".join(tensor.name for tensor in inputs)
    identity = (
        graph_consistency.add(graph, group, operation, names)
        if is_common
        else graph_consistency.CollectiveId(operation, None)
    )

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        process_group = backend.process_group(members.name, members.ranks)
        identity.check(process_group)
        return work(process_group, identity.key, [np.asarray(array) for array in arrays])

    sent = [tf.bitcast(t, _BITS) if t.dtype == tf.bfloat16 else t for t in inputs]
    types = [_BITS if dtype == tf.bfloat16 else dtype for dtype, _ in results]
    made = _tf_numpy_function.array_function(run, sent, types)
    if not results:
        return made
    finished = []
    for tensor, (dtype, shape) in zip(made if isinstance(made, (list, tuple)) else [made], results):
        tensor = tf.bitcast(tensor, tf.bfloat16) if dtype == tf.bfloat16 else tensor
        if graph is not None:
            tensor.set_shape(shape)
        finished.append(tensor)
    return finished


def _tensors(values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    return [tf.convert_to_tensor(value) for value in values]


def _type_name(inputs: list[tf.Tensor]) -> str | None:
    return collectives.BFLOAT16 if inputs and inputs[0].dtype == tf.bfloat16 else None


def _types(inputs: list[tf.Tensor]) -> str:
    """Return the types. Static shapes may differ between ranks; the shapes are compared at run time."""
    counted = Counter(tensor.dtype.base_dtype.name for tensor in inputs)
    return (
        ", ".join(name if number == 1 else f"{number} {name}" for name, number in sorted(counted.items())) or "nothing"
    )
