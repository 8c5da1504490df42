"""The part of each global batch on which a rank trains."""

from __future__ import annotations

import contextlib
import contextvars
import warnings
from typing import Iterable, Iterator

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Structure, Tensor
from npu_shim.distributed.ranks import get_rank_id
from npu_shim.npu_device.distribute.hccl import all_reduce, is_worker
from npu_shim.npu_device.npu_device import global_npu_ctx
from npu_shim.training.strategy_data import is_sharded, number_of_rows, rows_of_rank, slice_bounds, slice_each_batch

_weight: contextvars.ContextVar[Tensor | None] = contextvars.ContextVar("npu_shim_weight_of_rows", default=None)


def shard_batches(batches: Iterable[Structure]) -> Iterable[Structure]:
    """Return the part of each batch for this rank: rank r of n takes the r-th of n slices.

    All ranks must read the same batches: give shuffle a seed, or call tf.random.set_seed. A dataset with a ``shard``
    step by the number of ranks does not change.

    Args:
        batches: a tf.data.Dataset of batches, or another iterable of batches of tensors or arrays.
    Returns:
        The same kind of iterable; batches itself on one process.
    Raises:
        ValueError: the elements of a dataset are not batches.
    """
    if not is_worker("npu.distribute.shard_batches"):
        return batches
    if not isinstance(batches, tf.data.Dataset):
        return _Slices(batches)
    rows = _static_rows(batches)
    if rows is not None and not have_equal_shards(batches):
        warnings.warn(
            f"shard_batches: {rows} rows of a batch do not divide among {rank_and_size()[1]} ranks, so the rows of "
            "some ranks count more than others in a loop. Use a batch size that is a multiple of "
            f"{rank_and_size()[1]}.",
            RuntimeWarning,
            stacklevel=2,
        )
    return slice_each_batch(batches, *rank_and_size(), least=1)


def shard_batch(batch: Structure) -> Structure:
    """Return the rows of one batch for this rank: rank r of n takes the r-th of n slices.

    It is for what a training step makes for the global batch, as noise: its rows then belong to those of
    shard_batches(). All ranks must make the same batch, see share_random_state().

    Args:
        batch: a structure of tensors or arrays with the same number of rows. Scalars and None do not change.
    Returns:
        The rows; batch itself on one process.
    """
    return slice_and_weight_of_rank(batch)[0] if is_worker("npu.distribute.shard_batch") else batch


class _Slices:
    """The slices of this rank of an iterable of batches."""

    def __init__(self, batches: Iterable[Structure]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Structure]:
        return (slice_and_weight_of_rank(batch)[0] for batch in self._batches)


def slice_and_weight_of_rank(batch: Structure) -> tuple[Structure, Tensor | None]:
    """Return the rows of this rank of a batch, and their weight.

    Args:
        batch: a structure of tensors or arrays with the same number of rows. Scalars and None do not change.
    Returns:
        The rows, and rows / (rows of all / ranks), by which the mean of this rank is multiplied before it is averaged;
        None if it is 1 for every batch.
    """
    rank, size = rank_and_size()
    rows = next((number_of_rows(part) for part in tf.nest.flatten(batch) if _has_rows(part)), 0)
    begin, end = slice_bounds(rows, rank, size)
    weight = None
    if not isinstance(rows, int) or rows % size:
        weight = tf.cast((end - begin) * size, tf.float32) / tf.cast(rows, tf.float32)
    return (
        tf.nest.map_structure(lambda part: rows_of_rank(part, rank, size, 1) if _has_rows(part) else part, batch),
        weight,
    )


def weight_of_shard(rows: Structure) -> Tensor:
    """Return the weight of a batch of this rank's shard of a dataset, see slice_and_weight_of_rank().

    Args:
        rows: a structure of tensors with the same number of rows.
    """
    own = tf.cast(next((number_of_rows(part) for part in tf.nest.flatten(rows) if _has_rows(part)), 1), tf.float32)
    return own / all_reduce(own)


@contextlib.contextmanager
def set_step_weight(weight: Tensor | None) -> Iterator[None]:
    """Inside, where a training step is built, weight_of_rows() returns the weight."""
    token = _weight.set(weight)
    try:
        yield
    finally:
        _weight.reset(token)


def weight_of_rows() -> Tensor | None:
    """Return the weight of this rank's rows in the training step that is built; None for 1."""
    return _weight.get()


def have_equal_shards(batches: tf.data.Dataset) -> bool:
    """Return True if shard_batches() takes the same number of rows of each batch for each rank."""
    rows, size = _static_rows(batches), rank_and_size()[1]
    return rows is not None and (is_sharded(batches, size) or rows % size == 0)


def _static_rows(batches: tf.data.Dataset) -> int | None:
    shapes = [shape for shape in tf.nest.flatten(tf_api.v1.data.get_output_shapes(batches)) if shape.rank]
    rows: int | None = shapes[0].as_list()[0] if shapes else None
    return rows


def is_root() -> bool:
    """Return True on rank 0, which saves, and on one process."""
    return get_rank_id() == 0


def rank_and_size() -> tuple[int, int]:
    """Return rank and number of ranks of the open device."""
    handle = global_npu_ctx()
    assert handle is not None
    return handle.worker_id, handle.workers_num


def _has_rows(part: object) -> bool:
    return part is not None and len(getattr(part, "shape", ())) > 0
