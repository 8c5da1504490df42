"""A static batch dimension for training input: the NPU compiles for shapes it knows.

A dataset that was batched without ``drop_remainder`` ends with a smaller batch
and therefore has an unknown batch dimension. ``enforce_static_batch`` gives it
a known one: the full batches stay as they are, in content, order and
randomness, and each smaller one is left out.
"""
from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

from npu_shim import _tf

tf = _tf.tf

_BATCHING = ("Batch", "PaddedBatch", "ParallelBatch", "MapAndBatch")
_KEEPS_BATCHES = ("Repeat", "Prefetch", "Cache", "Take", "Skip", "Shuffle", "ShuffleAndRepeat", "Shard", "Filter",
                  "Options", "Model", "MaxIntraOpParallelism", "PrivateThreadPool", "AssertCardinality", "AssertNext",
                  "AssertPrev", "TakeWhile", "Sleep", "Zip", "Concatenate", "IgnoreErrors", "LatencyStats", "Map",
                  "ParallelMap")


class _Batching(NamedTuple):
    size: int
    dataset: Any


def enforce_static_batch(dataset: Any) -> Any:
    """Returns the dataset with a static batch dimension; smaller batches are dropped.

    Works on ``batch``, ``padded_batch`` and ``map_and_batch`` followed by
    ``repeat``, ``shuffle``, ``prefetch``, ``cache``, ``take``, ``skip``,
    ``shard``, ``filter``, ``zip``, ``concatenate`` or a ``map`` that keeps the
    batch dimension. A dataset that is static already is returned as it is; one
    whose batch size cannot be found is too, with one log line that says so.

    The same on the card and on the CPU.

    Args:
        dataset: a tf.data.Dataset (of TF 1 or 2) whose elements are batches.
    Returns:
        A tf.data.Dataset with the same full batches.
    Raises:
        TypeError: dataset is no tf.data.Dataset.
        ValueError: the dataset is known to have fewer examples than one batch.
        tf.errors.InvalidArgumentError: while it runs, when a ``map`` after
            ``batch`` turned out to change the batch dimension.
    """
    if not isinstance(dataset, (tf.compat.v2.data.Dataset, _tf.v1.data.Dataset)):
        raise TypeError(f"dataset={dataset!r} is {type(dataset).__name__}, but must be a tf.data.Dataset.")
    if not _open_shapes(dataset):
        return dataset
    batching = _find_batching(dataset)
    if batching is None:
        _tf.logging.warning(
            "npu_shim: the batch size of the training input cannot be found (%s), so its batch dimension stays "
            "unknown. Write batch(n, drop_remainder=True).", _tf.dataset_kind(dataset))
        return dataset
    size = batching[0].size
    for one in batching:
        _say_what_is_dropped(one)
    return _with_static_shapes(_only_full(dataset, size), size)


def _find_batching(dataset: Any) -> Optional[List[_Batching]]:
    """The batching steps behind a dataset, all of one size; None when that cannot be known."""
    kind = _tf.dataset_kind(dataset)
    if kind in _BATCHING:
        size = _tf.dataset_batch_size(dataset)
        return None if size is None else [_Batching(size, _tf.unwrap_dataset(dataset))]
    inputs = _tf.dataset_inputs(dataset) if kind in _KEEPS_BATCHES else []
    found: List[_Batching] = []
    for one in inputs:
        behind = _find_batching(one)
        if behind is None or (found and found[0].size != behind[0].size):
            return None
        found += behind
    return found or None


def _say_what_is_dropped(batching: _Batching) -> None:
    """One log line with the count where it is known.

    Raises:
        ValueError: there is not one full batch.
    """
    size = batching.size
    examples = _tf.cardinality(_tf.dataset_inputs(batching.dataset)[0])
    if examples < 0:
        _tf.logging.info("npu_shim: batch size %d made static; a smaller last batch is dropped.", size)
        return
    if examples < size:
        raise ValueError(
            f"The training input has {examples:,} examples, fewer than one batch of {size:,}: no full batch is left. "
            f"Use a batch size of at most {examples:,}, or repeat() before batch()."
        )
    if examples % size:
        _tf.logging.info("npu_shim: batch size %d made static; drops %s of %s examples per epoch.", size,
                         f"{examples % size:,}", f"{examples:,}")


def _is_open(shape: Any) -> bool:
    """True for a dense shape whose first dimension is not known."""
    if not isinstance(shape, tf.TensorShape) or not shape.rank:
        return False
    return tf.compat.dimension_value(shape[0]) is None


def _open_shapes(dataset: Any) -> List[Any]:
    shapes, _, classes = _tf.element_structure(dataset)
    return [s for s, c in zip(tf.nest.flatten(shapes), tf.nest.flatten(classes)) if c is tf.Tensor and _is_open(s)]


def _only_full(dataset: Any, size: int) -> Any:
    """Keeps the elements whose open dimensions are all ``size``."""

    @tf.autograph.experimental.do_not_convert
    def is_full(*element: Any) -> Any:
        counts = [tf.shape(t)[0] for t in tf.nest.flatten(element) if isinstance(t, tf.Tensor) and _is_open(t.shape)]
        alike = tf.reduce_all([tf.equal(count, counts[0]) for count in counts])
        check = _tf.v1.debugging.Assert(
            tf.logical_and(alike, counts[0] <= size),
            [f"npu_shim: a map after batch({size}) changes the batch dimension of the training input, so smaller "
             "batches cannot be told. Write batch(n, drop_remainder=True) and give the map's results static shapes. "
             "First dimensions:", tf.stack(counts)])
        with tf.control_dependencies([check]):
            return tf.equal(counts[0], size)

    return dataset.filter(is_full)


def _with_static_shapes(dataset: Any, size: int) -> Any:
    """Tells TensorFlow the batch dimension that _only_full has made sure of."""

    def fix(tensor: Any) -> Any:
        if isinstance(tensor, tf.Tensor) and _is_open(tensor.shape):
            tensor = tf.identity(tensor)
            tensor.set_shape([size] + tensor.shape.as_list()[1:])
        return tensor

    @tf.autograph.experimental.do_not_convert
    def fix_all(*element: Any) -> Any:
        fixed = tf.nest.map_structure(fix, element, expand_composites=False)
        return fixed[0] if len(fixed) == 1 else fixed

    return dataset.map(fix_all)
