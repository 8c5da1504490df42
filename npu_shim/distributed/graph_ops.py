"""HCCL's collectives between CPU processes as TensorFlow ops. See collective_op."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim.distributed import groups
from npu_shim.distributed.collective_op import BITS, Work, as_tensors, run_differentiable_op, run_op
from npu_shim.distributed.collectives.errors import Mismatch
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.distributed.collectives.reductions import BFLOAT16

_SUM = "allreduce sum"


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
    inputs = as_tensors(tensors)
    name, results = numpy_type_name(inputs), [(tensor.dtype, tensor.shape) for tensor in inputs]

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return process_group.allreduce(arrays, reduction, key=key, type_name=name)

    return run_differentiable_op(f"allreduce {reduction}", group, inputs, results, work, gradient_of_reduction)


def reduce(tensor: tf.Tensor, reduction: str, root: int, group: str) -> tf.Tensor:
    """Reduce a tensor to rank ``root`` of the group; other ranks get their own tensor back."""
    inputs = as_tensors([tensor])
    name = numpy_type_name(inputs)

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        reduced = process_group.reduce(arrays[0], reduction, root=root, key=key, type_name=name)
        return [reduced if process_group.rank == root else reduced.copy()]  # TensorFlow must not get its own input back

    return _one_result(f"reduce {reduction} to rank {root}", group, inputs, inputs[0].shape, work)


def reduce_scatter(tensor: tf.Tensor, reduction: str, group: str) -> tf.Tensor:
    """Reduce a tensor; rank r of the group gets block r of axis 0."""
    inputs = as_tensors([tensor])
    name = numpy_type_name(inputs)
    size = groups.find_group(group).size
    shape = inputs[0].shape
    if shape.rank is not None:
        first = tf_api.v1.dimension_value(shape[0]) if shape.rank else None
        if shape.rank == 0 or (first is not None and first % size):
            raise ValueError(
                f"hccl_ops.reduce_scatter: a tensor of shape {shape} cannot be scattered over {size} "
                f"ranks. Make axis 0 a multiple of {size}."
            )
        shape = tf.TensorShape([None if first is None else first // size]).concatenate(shape[1:])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.reduce_scatter(arrays[0], reduction, key=key, type_name=name)]

    return _one_result(f"reduce_scatter {reduction}", group, inputs, shape, work)


def allgather(tensor: tf.Tensor, group: str) -> tf.Tensor:
    """Concatenate the tensors of a group's ranks along axis 0; a scalar counts as [1].

    The number of rows may differ between ranks, except in a graph in which it is static: like the NPU's op, this one
    then has a static shape.
    """
    inputs = as_tensors([tensor])
    shape, size = inputs[0].shape, groups.find_group(group).size
    first = None
    if shape.rank is not None:
        first = tf_api.v1.dimension_value(shape[0]) if shape.rank else 1
        shape = tf.TensorShape([None if first is None else first * size]).concatenate(shape[1:])
    static_rows = None if tf.executing_eagerly() else first

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        result, rows = process_group.allgather_with_counts(arrays[0], key=key)
        if static_rows is not None and (rows != static_rows).any():
            raise Mismatch(
                f"{key}: the ranks have {', '.join(map(str, rows))} rows, but the static shape of this rank's result "
                f"needs {static_rows} on each. Pass the same shape on every rank, as HCCL needs it."
            )
        return [result]

    return _one_result("allgather", group, inputs, shape, work)


def broadcast(tensors: Sequence[tf.Tensor], root: int, group: str) -> list[tf.Tensor]:
    """Copy the tensors, of any types, of rank ``root`` of the group to every rank."""
    inputs = as_tensors(tensors)

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        received = process_group.broadcast(arrays, root=root, key=key)
        return [array.copy() for array in received] if process_group.rank == root else received

    results = [(tensor.dtype, tensor.shape) for tensor in inputs]
    return run_differentiable_op(f"broadcast from rank {root}", group, inputs, results, work, raise_for_gradient)


def send(tensor: tf.Tensor, tag: int, dest: int, group: str) -> tf.Operation | None:
    """Send a tensor to a rank of the group. Return an op that ends when it is received; None if eager."""
    inputs = as_tensors([tensor])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        process_group.send(arrays[0], dest=dest, tag=tag)
        return []

    sent = run_op("send", group, inputs, [], work, is_common=False)
    return sent if isinstance(sent, tf.Operation) else None


def receive(shape: Sequence[int], dtype: tf.DType, tag: int, source: int, group: str) -> tf.Tensor:
    """Receive the tensor that a rank of the group sends with the same tag."""
    numpy_type = (BITS if dtype == tf.bfloat16 else dtype).as_numpy_dtype

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.receive(tuple(shape), numpy_type, source=source, tag=tag)]

    return run_op("receive", group, [], [(dtype, tf.TensorShape(shape))], work, is_common=False)[0]


def all_to_all_v(tensors: Sequence[tf.Tensor], group: str) -> tf.Tensor:
    """Send a segment of a flat tensor to each rank.

    Args:
        tensors: data, send counts, send displacements, receive counts, receive displacements.
        group: name of the group.
    """
    inputs = as_tensors(tensors[:1]) + [tf.cast(t, tf.int64) for t in tensors[1:]]
    counts = tf_api.static_value(inputs[3])
    shape = tf.TensorShape([None if counts is None else int(counts.sum())])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.alltoallv(*arrays, key=key)]

    return _one_result("alltoallv", group, inputs, shape, work)


def all_to_all_v_c(data: tf.Tensor, counts: tf.Tensor, group: str) -> tf.Tensor:
    """Send a segment of a flat tensor to each rank, with the counts of all ranks as a matrix."""
    inputs = as_tensors([data]) + [tf.cast(counts, tf.int64)]

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.alltoallvc(*arrays, key=key)]

    return _one_result("alltoallvc", group, inputs, tf.TensorShape([None]), work)


def _one_result(kind: str, group: str, inputs: list[tf.Tensor], shape: tf.TensorShape, work: Work) -> tf.Tensor:
    """Return the result of a collective without gradient, which has the type of the first input."""
    return run_differentiable_op(kind, group, inputs, [(inputs[0].dtype, shape)], work, raise_for_gradient)[0]


def gradient_of_reduction(
    kind: str, group: str, inputs: Sequence[tf.Tensor], results: Sequence[tf.Tensor], dys: Sequence[tf.Tensor]
) -> list[tf.Tensor | None]:
    """Return the gradients of a sum's inputs.

    Raises:
        LookupError: for other reductions.
    """
    if kind == _SUM:
        return [*allreduce(dys, "sum", group)]
    raise _no_gradient_error(kind, "the NPU sums over all ranks, which is not the derivative")


def raise_for_gradient(
    kind: str, group: str, inputs: Sequence[tf.Tensor], results: Sequence[tf.Tensor], dys: Sequence[tf.Tensor]
) -> list[tf.Tensor | None]:
    """Raise the error of a collective without gradient.

    Raises:
        LookupError: always.
    """
    raise _no_gradient_error(kind, "the NPU has none either")


def _no_gradient_error(kind: str, reason: str) -> LookupError:
    return LookupError(
        f"hccl_ops: {kind} has no gradient: {reason}. Wrap its result in tf.stop_gradient if the loss does not depend "
        "on it."
    )


def numpy_type_name(inputs: list[tf.Tensor]) -> str | None:
    """Return the type name that a process group needs for the first of several tensors, which NumPy may not have."""
    return BFLOAT16 if inputs and inputs[0].dtype == tf.bfloat16 else None
