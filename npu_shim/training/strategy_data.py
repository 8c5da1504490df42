"""The part of a dataset that one replica of a strategy trains on."""

from __future__ import annotations

import sys
from typing import Any, Iterator

from npu_shim import _tf, _tf_data

tf = _tf.tf
_OWNERS = ("keras.", "tf_keras.", "tensorflow.python.keras.", "tensorflow_core.python.keras.", "tensorflow_estimator.")
_WHOLE = frozenset({"evaluate", "predict"})


def every_nth(dataset: Any, rank: int, size: int) -> Any:
    """Batches ``rank``, ``rank + size``, ... of a dataset, and as many of them for each rank.

    Args:
        dataset: of batches for one replica.
        rank: this one's number.
        size: number of ranks.
    Returns:
        A dataset; the given one where it has been sharded by the number of ranks.
    Raises:
        TypeError: it is no dataset.
    """
    if not isinstance(dataset, (tf.data.Dataset, _tf.v1.data.Dataset)):
        raise TypeError(
            f"the input_fn gave {type(dataset).__name__}, but with a strategy it must give a tf.data.Dataset, of "
            "which each rank takes its batches."
        )
    if size == 1 or is_sharded(dataset, size):
        return dataset

    def own(*windows: Any) -> Any:
        return tf.data.Dataset.zip(windows if len(windows) > 1 else windows[0]).skip(rank).take(1)

    return dataset.window(size, drop_remainder=True).flat_map(own)


def part_of_batches(dataset: Any, rank: int, size: int) -> Any:
    """The rank-th of ``size`` parts of each batch, as even as they go.

    Args:
        dataset: of global batches.
        rank: this one's number.
        size: number of ranks.
    Returns:
        A dataset; the given one where it has been sharded by the number of ranks.
    Raises:
        ValueError: its elements are no batches.
    """
    if size == 1 or is_sharded(dataset, size):
        return dataset
    for shape in tf.nest.flatten(_tf.v1.data.get_output_shapes(dataset)):
        if shape.rank == 0:
            raise ValueError(
                "the dataset gives single numbers, but each rank takes its part of a batch: call batch(n) with "
                "the number of examples for all ranks together."
            )

    def part(*element: Any) -> Any:
        cut = tf.nest.map_structure(lambda value: _rows(value, rank, size), element)
        return cut if len(cut) > 1 else cut[0]

    return dataset.map(part)


def is_sharded(dataset: Any, size: int) -> bool:
    """Whether ``shard`` with this number, or one that is not known yet, is among the steps that make a dataset."""
    return any(
        _tf_data.dataset_kind(step) == "Shard" and _tf_data.dataset_num_shards(step) in (None, size)
        for step in _steps(dataset)
    )


def _steps(dataset: Any) -> Iterator[Any]:
    yield _tf_data.unwrap_dataset(dataset)
    for source in _tf_data.dataset_inputs(dataset):
        yield from _steps(source)


def _rows(value: Any, rank: int, size: int) -> Any:
    """The rows of one rank; of a sparse tensor too."""
    if isinstance(value, tf.SparseTensor):
        shape = value.dense_shape
        begin, end = _bounds(shape[0], rank, size)
        first = tf.concat([[begin], tf.zeros_like(shape[1:])], 0)
        return tf.sparse.slice(value, first, tf.concat([[end - begin], shape[1:]], 0))
    rows = _tf.v1.dimension_value(value.shape[0]) if value.shape.rank else None
    begin, end = _bounds(
        tf.shape(value)[0]
        if rows is None and isinstance(value, tf.Tensor)
        else value.nrows()
        if rows is None
        else rows,
        rank,
        size,
    )
    return value[begin:end]


def _bounds(rows: Any, rank: int, size: int) -> Any:
    return rows * rank // size, rows * (rank + 1) // size


def reads_all() -> bool:
    """Whether a Keras model or an Estimator that evaluates or predicts is asking.

    Neither says so to a strategy. Each rank then reads all data, so that it has all results, and one rank may do it alone.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _WHOLE and frame.f_globals.get("__name__", "").startswith(_OWNERS):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
