"""Collectives whose ranks have another number of rows each, as TensorFlow ops with gradients. See collective_op.

HCCL has none of them: its ranks have equal shapes.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim.distributed import graph_ops, groups
from npu_shim.distributed.collective_op import Gradient, Work, as_tensors, run_differentiable_op
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.distributed.graph_ops import numpy_type_name
from npu_shim.distributed.world import world


def allgather(tensor: tf.Tensor, group: str) -> tuple[tf.Tensor, tf.Tensor]:
    """Concatenate the tensors of a group's ranks along axis 0.

    The gradient of a rank's tensor is the sum of the gradients of its rows over all ranks.

    Args:
        tensor: [d0, ...]; d0 may differ between ranks. A scalar counts as [1].
        group: name of the group.
    Returns:
        A tensor [sum of d0, ...], and the d0 of each rank, int64 [size].
    """
    inputs = as_tensors([tensor])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [*process_group.allgather_with_counts(arrays[0], key=key)]

    return _rows_and_counts("allgather", group, inputs, work, _allgather_gradient)


def _allgather_gradient(
    kind: str, group: str, inputs: Sequence[tf.Tensor], results: Sequence[tf.Tensor], dys: Sequence[tf.Tensor]
) -> list[tf.Tensor | None]:
    members = groups.find_group(group)
    rank, counts = members.rank_of(world().rank), results[1]
    begin = tf.reduce_sum(counts[:rank])
    rows = graph_ops.allreduce(dys[:1], "sum", group)[0][begin : begin + counts[rank]]
    return [tf.reshape(rows, tf.shape(inputs[0]))]


def reduce_scatter(tensor: tf.Tensor, reduction: str, group: str) -> tf.Tensor:
    """Reduce a tensor; each rank of the group gets a block of axis 0.

    The gradient of a sum is the concatenation of the gradients of all ranks; other reductions have none.

    Args:
        tensor: [d0, ...]; the first d0 % size ranks get one row more than the others.
        reduction: 'sum', 'prod', 'max' or 'min'.
        group: name of the group.
    """
    inputs = as_tensors([tensor])
    name, members = numpy_type_name(inputs), groups.find_group(group)
    shape = _shape_with_any_rows(inputs[0])
    if inputs[0].shape.rank == 0:
        raise ValueError("reduce_scatter: a scalar cannot be scattered. Pass a tensor with rows.")
    rows = None if inputs[0].shape.rank is None else tf_api.v1.dimension_value(inputs[0].shape[0])
    if rows is not None:
        own = rows // members.size + (members.rank_of(world().rank) < rows % members.size)
        shape = tf.TensorShape([own]).concatenate(shape[1:])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [process_group.reduce_scatter(arrays[0], reduction, key=key, type_name=name, uneven=True)]

    results = [(inputs[0].dtype, shape)]
    return run_differentiable_op(
        f"uneven reduce_scatter {reduction}", group, inputs, results, work, _reduce_scatter_gradient
    )[0]


def _reduce_scatter_gradient(
    kind: str, group: str, inputs: Sequence[tf.Tensor], results: Sequence[tf.Tensor], dys: Sequence[tf.Tensor]
) -> list[tf.Tensor | None]:
    if not kind.endswith(" sum"):
        raise LookupError(
            f"{kind} has no gradient: only that of a sum is defined. Wrap its result in tf.stop_gradient if the loss "
            "does not depend on it."
        )
    return [allgather(dys[0], group)[0]]


def alltoall(tensor: tf.Tensor, splits: tf.Tensor | None, group: str) -> tuple[tf.Tensor, tf.Tensor]:
    """Send rows of axis 0 to each rank, and receive some from each.

    The gradient sends the gradient of each row back to the rank that sent the row.

    Args:
        tensor: [d0, ...]; d0 may differ between ranks.
        splits: integers [size]; the number of rows for each rank. None for equal parts.
        group: name of the group.
    Returns:
        The rows from all ranks in rank order, and their numbers, int64 [size].
    """
    inputs = as_tensors([tensor]) + ([] if splits is None else [tf.cast(splits, tf.int64)])

    def work(process_group: ProcessGroup, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [*process_group.alltoall(arrays[0], arrays[1] if len(arrays) > 1 else None, key=key)]

    return _rows_and_counts("alltoall", group, inputs, work, _alltoall_gradient)


def _alltoall_gradient(
    kind: str, group: str, inputs: Sequence[tf.Tensor], results: Sequence[tf.Tensor], dys: Sequence[tf.Tensor]
) -> list[tf.Tensor | None]:
    back = alltoall(dys[0], results[1], group)[0]
    if len(inputs) == 1:
        return [back]
    unsent = tf.shape(inputs[0])[0] - tf.shape(back)[0]  # rows behind those of splits
    padding = tf.concat([[unsent], tf.shape(back)[1:]], 0)
    return [tf.concat([back, tf.zeros(padding, back.dtype)], 0), None]


def _shape_with_any_rows(tensor: tf.Tensor) -> tf.TensorShape:
    """Return the static shape of a tensor with another number of rows."""
    shape = tensor.shape
    return shape if shape.rank is None else tf.TensorShape([None]).concatenate(shape[1:])


def _rows_and_counts(
    kind: str, group: str, inputs: list[tf.Tensor], work: Work, gradient: Gradient
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the results of a collective: rows of any number, and a number for each rank of the group."""
    counts = tf.int64, tf.TensorShape([groups.find_group(group).size])
    rows, numbers = run_differentiable_op(
        kind, group, inputs, [(inputs[0].dtype, _shape_with_any_rows(inputs[0])), counts], work, gradient
    )
    return rows, numbers
