"""Horovod's collectives on tensors, and its ranks as functions.

A collective is known by its name, as in Horovod: ranks may build and run collectives in any order. In a graph the
name is that of its tensor unless one is given; eagerly the n-th unnamed collective of a kind is the same on all ranks.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor, Variable
from npu_shim.horovod.common import process_sets as sets
from npu_shim.horovod.common.process_sets import (
    ProcessSet,
    add_process_set as add_process_set,
    global_process_set,
    remove_process_set as remove_process_set,
)
from npu_shim.horovod.common.rank_functions import *  # noqa: F403
from npu_shim.horovod.common.rank_functions import rank, size
from npu_shim.horovod.common.util import num_rank_is_power_2
from npu_shim.horovod.tensorflow import group_collectives
from npu_shim.horovod.tensorflow.dense_allreduce import (
    Adasum as Adasum,
    Average,
    Max as Max,
    Min as Min,
    Product as Product,
    Sum,
    _allreduce,
    _grouped_allreduce as _grouped_allreduce,
    handle_average_backwards_compatibility as handle_average_backwards_compatibility,
    reduction_name,
    size_of_process_set,
)
from npu_shim.horovod.tensorflow.gradients import replace_gradient, scale_gradient, scale_tensor
from npu_shim.horovod.tensorflow.naming import collective_name
from npu_shim.horovod.tensorflow.rank_ops import (
    local_rank_op as local_rank_op,
    local_size_op as local_size_op,
    process_set_included_op as process_set_included_op,
    rank_op as rank_op,
    size_op as size_op,
)
from npu_shim.horovod.tensorflow.util import _executing_eagerly

check_num_rank_power_of_2 = num_rank_is_power_2


def allgather(
    tensor: Tensor,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Concatenate the tensors of all ranks along axis 0, in rank order.

    Args:
        tensor: [d0, ...]; d0 may differ between ranks. On NPUs a tensor with a static d0 has that d0 on every rank.
        name: the name of the collective.
        ignore_name_scope: True if name is the same in every name scope.
        process_set: the ranks that take part.
    Returns:
        [sum of d0, ...]. The gradient of a rank's tensor is the mean over the ranks of the gradient of its rows.
    """
    sent = tf.convert_to_tensor(tensor)
    full_name = collective_name("Allgather", name, [sent], ignore_name_scope)
    return group_collectives.allgather(
        scale_gradient(sent, 1.0 / size_of_process_set(process_set)), full_name, process_set
    )


def grouped_allgather(
    tensors: Sequence[Tensor],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """Run allgather on each of several tensors."""
    return [
        allgather(tensor, name and f"{name}_{index}", ignore_name_scope, process_set)
        for index, tensor in enumerate(tensors)
    ]


def broadcast(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Copy the tensor of one rank to all ranks.

    Args:
        tensor: of the same shape and type on every rank.
        root_rank: the world rank whose tensor is sent.
        name: the name of the collective.
        ignore_name_scope: True if name is the same in every name scope.
        process_set: the ranks that take part.
    Returns:
        The tensor of that rank. Its gradient there is the mean over the ranks, and 0 on the others.
    """
    sent = tf.convert_to_tensor(tensor)
    full_name = collective_name("Broadcast", name, [sent], ignore_name_scope)
    (value,) = group_collectives.broadcast([sent], root_rank, full_name, process_set)

    number = process_set.process_set_id or 0

    def backward(dy: Tensor) -> Tensor:
        return scale_tensor(
            _allreduce(dy, op=Average, process_set=sets.process_set_by_id(number)), float(rank() == root_rank)
        )

    if not sent.dtype.is_floating:
        return value
    return replace_gradient(value, sent, backward, f"broadcast {root_rank} {process_set}")


def broadcast_(
    variables: Sequence[Variable],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """Set variables to those of one rank, in one message.

    Args:
        variables: of the same names, shapes and types on every rank, in any order.
        root_rank: the world rank whose variables are sent.
        name: the name of the collective.
        process_set: the ranks that take part.
    Returns:
        The values of the variables afterwards.
    """
    if not variables:
        return []
    order = sorted(range(len(variables)), key=lambda index: variables[index].name)
    listed = [variables[index] for index in order]
    full_name = collective_name("Broadcast", name, listed, False)
    sent = group_collectives.broadcast(
        [tf.convert_to_tensor(source) for source in listed], root_rank, full_name, process_set
    )
    assigned = [variable.assign(value) for variable, value in zip(listed, sent)]
    with tf.control_dependencies([] if _executing_eagerly() else [tf.group(*assigned)]):
        values = dict(zip(order, [tf.identity(value) for value in sent]))
    return [values[index] for index in range(len(values))]


def alltoall(
    tensor: Tensor,
    splits: Tensor | None = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Tensor | tuple[Tensor, Tensor]:
    """Send rows of a tensor to each rank, and receive rows from each.

    Args:
        tensor: [d0, ...]; d0 may differ between ranks.
        splits: [size]; the number of rows for each rank. None for equal parts.
        name: the name of the collective.
        ignore_name_scope: True if name is the same in every name scope.
        process_set: the ranks that take part.
    Returns:
        The rows from all ranks in rank order; with splits also their numbers, int32 [size].
    """
    sent = tf.convert_to_tensor(tensor)
    parts = None if splits is None else tf.convert_to_tensor(splits)
    full_name = collective_name("Alltoall", name, [sent], ignore_name_scope)
    output, received = group_collectives.alltoall(sent, parts, full_name, process_set)
    return output if parts is None else (output, tf.cast(received, tf.int32))


def _reducescatter(
    tensor: Tensor,
    name: str | None = None,
    op: int = Sum,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """Reduce a tensor; each rank gets a block of axis 0, the first ranks one row more if they do not divide evenly.

    Args:
        tensor: [d0, ...], of the same shape on every rank.
        name: the name of the collective.
        op: Average or Sum.
        ignore_name_scope: True if name is the same in every name scope.
        process_set: the ranks that take part.
        prescale_factor: multiplies the tensor before the reduction.
        postscale_factor: multiplies the result.
    Returns:
        A tensor [rows of this rank, ...]. As in Horovod the gradient of a sum is multiplied by the number of ranks.
    """
    reduction, ranks = reduction_name(op, "hvd.reducescatter"), size_of_process_set(process_set)
    sent = tf.convert_to_tensor(tensor)
    full_name = collective_name("Reducescatter", name, [sent], ignore_name_scope)
    block = group_collectives.reduce_scatter(
        scale_tensor(scale_gradient(sent, ranks), prescale_factor), reduction, full_name, process_set
    )
    return scale_tensor(block, postscale_factor, ranks if op == Average else 1)


def join() -> Tensor:
    """Raise an error: a rank cannot leave while others go on.

    Raises:
        NotImplementedError: always with several ranks.
    """
    if size() == 1:
        return tf.constant(0)
    raise NotImplementedError(
        "hvd.join() is not supported: every rank takes part in every collective. Give each rank the same number of "
        "steps: steps = int(hvd.allreduce(steps_of_this_rank, op=hvd.Min)), or dataset.repeat().take(steps)."
    )


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Return when every rank of a process set has called it. In a graph, use an op with the result of an allreduce."""
    group_collectives.barrier(process_set)
