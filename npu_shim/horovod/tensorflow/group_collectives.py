"""Horovod's collectives on the groups of npu_shim: between CPU processes, or over HCCL on NPUs."""

from __future__ import annotations

import contextlib
from typing import Iterator, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.distributed import backend, graph_consistency, graph_ops, uneven_ops
from npu_shim.distributed.collectives.errors import Mismatch
from npu_shim.distributed.groups import find_group as group_with_name
from npu_shim.distributed.world import world
from npu_shim.horovod.common.process_sets import ProcessSet, group_name_of
from npu_shim.horovod.tensorflow import card


def allreduce(tensors: Sequence[Tensor], reduction: str, name: str, process_set: ProcessSet) -> list[Tensor]:
    """Reduce tensors of one type with 'sum', 'min', 'max' or 'prod'."""
    group = _group_name_of_set(process_set)
    if process_set.size() == 1:
        return [tf.identity(tensor) for tensor in tensors]
    if host_device.is_npu():
        return card.allreduce(tensors, reduction, group)
    with _name_collectives(name):
        return graph_ops.allreduce(tensors, reduction, group)


def allgather(tensor: Tensor, name: str, process_set: ProcessSet) -> Tensor:
    """Concatenate tensors along axis 0; a scalar counts as [1]. The gradient is the sum over the ranks."""
    group = _group_name_of_set(process_set)
    if process_set.size() == 1:
        return tf.reshape(tensor, [1]) if tensor.shape.rank == 0 else tf.identity(tensor)
    if host_device.is_npu():
        return card.allgather(tensor, group)
    with _name_collectives(name):
        return uneven_ops.allgather(tensor, group)[0]


def broadcast(tensors: Sequence[Tensor], root_rank: int, name: str, process_set: ProcessSet) -> list[Tensor]:
    """Copy the tensors of a world rank to every rank of the set."""
    group = _group_name_of_set(process_set)
    if root_rank not in process_set.ranks:
        raise ValueError(f"root_rank={root_rank!r} is not allowed. Pass a rank of {process_set}.")
    if process_set.size() == 1:
        return [tf.identity(tensor) for tensor in tensors]
    root = process_set.ranks.index(root_rank)
    if host_device.is_npu():
        return card.broadcast(tensors, root, group)
    with _name_collectives(name):
        return graph_ops.broadcast(tensors, root, group)


def alltoall(tensor: Tensor, splits: Tensor | None, name: str, process_set: ProcessSet) -> tuple[Tensor, Tensor]:
    """Send rows to each rank; return the received rows and their numbers, int64 [size]."""
    group = _group_name_of_set(process_set)
    if host_device.is_npu():
        return card.alltoall(tensor, splits, group)
    with _name_collectives(name):
        try:
            return uneven_ops.alltoall(tensor, splits, group)
        except ValueError as error:  # in eager mode; in a graph TensorFlow makes it an InvalidArgumentError itself
            raise tf.errors.InvalidArgumentError(None, None, str(error)) from error


def reduce_scatter(tensor: Tensor, reduction: str, name: str, process_set: ProcessSet) -> Tensor:
    """Reduce a tensor; each rank gets a block of axis 0."""
    group = _group_name_of_set(process_set)
    if tensor.shape.rank == 0:
        raise tf.errors.InvalidArgumentError(None, None, "hvd.reducescatter: a scalar has no rows to scatter.")
    if process_set.size() == 1:
        return tf.identity(tensor)
    if host_device.is_npu():
        return card.reduce_scatter(tensor, reduction, group)
    with _name_collectives(name):
        return uneven_ops.reduce_scatter(tensor, reduction, group)


def barrier(process_set: ProcessSet) -> None:
    """Return when every rank of the set has called it."""
    group = _group_name_of_set(process_set)
    if process_set.size() == 1:
        return
    if host_device.is_npu():
        card.barrier(group)
    else:
        backend.process_group(group, group_with_name(group).ranks).barrier(key="hvd.barrier")


def _group_name_of_set(process_set: ProcessSet) -> str:
    """Return the name of the group of a process set that this process is in.

    Raises:
        InvalidArgumentError: this process is not in the set.
        ValueError: the set was not added.
    """
    group = group_name_of(process_set)
    rank = world().rank
    if rank not in process_set.ranks:
        raise tf.errors.InvalidArgumentError(
            None, None, f"rank {rank} is not in {process_set}. Call its collectives where included() is True."
        )
    return group


@contextlib.contextmanager
def _name_collectives(name: str) -> Iterator[None]:
    """Give the collective its name; eagerly, raise a difference between the ranks as Horovod does."""
    try:
        with graph_consistency.name_collectives(name):
            yield
    except (Mismatch, tf.errors.UnknownError) as error:
        if isinstance(error, Mismatch) or Mismatch.__name__ in error.message:
            raise tf.errors.FailedPreconditionError(None, None, str(error)) from error
        raise
