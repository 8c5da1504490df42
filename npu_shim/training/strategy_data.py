"""The part of a dataset on which one replica of a strategy trains."""

from __future__ import annotations

import sys
from typing import Iterator

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.types import Dataset, Structure, Tensor

tf = tf_api.tf
_KERAS_AND_ESTIMATOR = (
    "keras.",
    "tf_keras.",
    "tensorflow.python.keras.",
    "tensorflow_core.python.keras.",
    "tensorflow_estimator.",
)
_SAVING = tuple(
    "tensorflow.python." + name for name in ("checkpoint.", "saved_model.save", "training.saving.", "training.saver")
) + ("keras.saving.", "keras.src.saving.", "tf_keras.src.saving.")
_METHODS_ON_ALL_DATA = frozenset({"evaluate", "predict"})


def every_nth_batch(dataset: Dataset, rank: int, size: int) -> Dataset:
    """Return the batches ``rank``, ``rank + size``, ... of a dataset, the same number for each rank.

    Args:
        dataset: a dataset of batches for one replica.
        rank: the rank.
        size: number of ranks.
    Returns:
        A dataset; the given one if it is sharded by the number of ranks.
    Raises:
        TypeError: if it is not a dataset.
    """
    if not isinstance(dataset, (tf.data.Dataset, tf_api.v1.data.Dataset)):
        raise TypeError(
            f"the input_fn returns {type(dataset).__name__}. With a strategy it must return a tf.data.Dataset, from "
            "which each rank takes its batches."
        )
    if size == 1 or is_sharded(dataset, size):
        return dataset

    def batch_of_rank(*windows: Dataset) -> Dataset:
        return tf.data.Dataset.zip(windows if len(windows) > 1 else windows[0]).skip(rank).take(1)

    return dataset.window(size, drop_remainder=True).flat_map(batch_of_rank)


def slice_each_batch(dataset: Dataset, rank: int, size: int, least: int = 0) -> Dataset:
    """Return the rank-th of ``size`` slices of each batch; slices differ by at most one row.

    Args:
        dataset: a dataset of global batches.
        rank: the rank.
        size: number of ranks.
        least: the least number of rows of a slice; slices of smaller batches share rows.
    Returns:
        A dataset; the given one if it is sharded by the number of ranks.
    Raises:
        ValueError: if its elements are not batches.
    """
    if size == 1 or is_sharded(dataset, size):
        return dataset
    check_is_batched(dataset)

    def batch_slice(*element: Structure) -> Structure:
        rows = tf.nest.map_structure(lambda value: rows_of_rank(value, rank, size, least), element)
        return rows if len(rows) > 1 else rows[0]

    return dataset.map(batch_slice)


def check_is_batched(dataset: Dataset) -> None:
    """Raise ValueError if a dataset has scalar elements."""
    for shape in tf.nest.flatten(tf_api.v1.data.get_output_shapes(dataset)):
        if shape.rank == 0:
            raise ValueError(
                "the dataset has scalar elements, but each rank takes a slice of a batch. Call batch(n) with the "
                "number of examples for all ranks together."
            )


def is_sharded(dataset: Dataset, size: int) -> bool:
    """Return True if a pipeline has a ``shard`` step by this number, or by a number that is not constant."""
    return any(
        tf_data.dataset_kind(step) == "Shard" and tf_data.dataset_num_shards(step) in (None, size)
        for step in _dataset_and_inputs(dataset)
    )


def _dataset_and_inputs(dataset: Dataset) -> Iterator[Dataset]:
    yield tf_data.unwrap_dataset(dataset)
    for source in tf_data.dataset_inputs(dataset):
        yield from _dataset_and_inputs(source)


def rows_of_rank(value: Tensor, rank: int, size: int, least: int = 0) -> Tensor:
    """Return the rows of one rank, of a dense, ragged or sparse tensor.

    Args:
        value: a tensor with at least one dimension.
        rank: the rank.
        size: number of ranks.
        least: the least number of rows, if the tensor has as many.
    """
    rows = number_of_rows(value)
    begin, end = slice_bounds(rows, rank, size)
    if least and not (isinstance(rows, int) and rows >= least * size):
        begin = tf.maximum(tf.minimum(begin, rows - least), 0)
        end = tf.maximum(end, begin + least)
    if isinstance(value, tf.SparseTensor):
        shape = value.dense_shape
        first = tf.concat([[begin], tf.zeros_like(shape[1:])], 0)
        return tf.sparse.slice(value, first, tf.concat([[end - begin], shape[1:]], 0))
    return value[begin:end]


def number_of_rows(value: Tensor) -> int | Tensor:
    """Return the number of rows of a dense, ragged or sparse tensor or an array, an int if it is static."""
    if isinstance(value, tf.SparseTensor):
        return value.dense_shape[0]
    shape = tf.TensorShape(value.shape)
    rows = tf_api.v1.dimension_value(shape[0]) if shape.rank else None
    if rows is None:
        rows = tf.shape(value)[0] if isinstance(value, tf.Tensor) else value.nrows()
    return rows


def slice_bounds(rows: int | Tensor, rank: int, size: int) -> tuple[int | Tensor, int | Tensor]:
    """Return the first row of a rank and the row after its last one."""
    return rows * rank // size, rows * (rank + 1) // size


def is_evaluating_or_predicting() -> bool:
    """Return True if a Keras model or an Estimator is evaluating or predicting.

    Then each rank reads all data, so that it has all results, and one rank may run alone. Keras and Estimator do not
    pass this information to a strategy. The call stack is its only source besides patches of their methods.
    """
    return _is_called_by(_KERAS_AND_ESTIMATOR, _METHODS_ON_ALL_DATA)


def is_saving_model() -> bool:
    """Return True if a checkpoint or SavedModel is being written, as one rank alone may do."""
    return _is_called_by(_SAVING, None)


def _is_called_by(modules: tuple[str, ...], functions: frozenset[str] | None) -> bool:
    """Return True if a function of some modules is on the stack.

    Args:
        modules: the beginnings of the names of the modules.
        functions: the names of the functions; None for all.
    """
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if (functions is None or frame.f_code.co_name in functions) and module.startswith(modules):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
