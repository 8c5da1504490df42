"""A static batch dimension for training input: the NPU compiles for shapes it knows.

A dataset that was batched without ``drop_remainder`` ends with a smaller batch
and therefore has an unknown batch dimension. ``enforce_static_batch`` gives it
a known one: the full batches stay as they are, in content, order and
randomness, and each smaller one is left out.
"""

from __future__ import annotations

from typing import Any

from npu_shim import _tf, _tf_data
from npu_shim.data.batching import (
    Batching,
    as_element,
    check_dataset,
    check_sizes,
    find_batching,
    has_open_batch,
    is_open,
    open_sizes,
    with_batch_dimension,
)
from npu_shim.data.dropped_examples import Dropped

tf = _tf.tf


def enforce_static_batch(dataset: Any) -> Any:
    """Returns the dataset with a static batch dimension; smaller batches are dropped.

    Works on ``batch``, ``padded_batch`` and ``map_and_batch`` followed by
    ``repeat``, ``shuffle``, ``prefetch``, ``cache``, ``take``, ``skip``,
    ``shard``, ``filter``, ``zip``, ``concatenate`` or a ``map`` that keeps the
    batch dimension. A dataset that is static already is returned as it is; one
    whose batch size cannot be found is too, with one log line that says so.

    Of data whose size is known a log line says at once what is dropped; of
    others it is counted while they are read, and said when training ends.

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
    check_dataset(dataset)
    if not has_open_batch(dataset):
        return dataset
    batching = find_batching(dataset)
    if batching is None:
        _tf.logging.warning(
            "npu_shim: the batch size of the training input cannot be found (%s), so its batch dimension stays "
            "unknown. Write batch(n, drop_remainder=True).",
            _tf_data.dataset_kind(dataset),
        )
        return dataset
    size = batching[0].size
    for one in batching:
        _say_what_is_dropped(one)
    unknown = any(_tf_data.cardinality(one.examples) == _tf_data.UNKNOWN_CARDINALITY for one in batching)
    full = _only_full(dataset, size, Dropped(size) if unknown else None)

    @tf.autograph.experimental.do_not_convert
    def fix(*element: Any) -> Any:
        return with_batch_dimension(as_element(full, element), size)

    return full.map(fix)


def tell_open_batch(tensors: Any) -> None:
    """One log line where an input_fn gave tensors, and not a dataset, whose batch dimension is not known.

    Args:
        tensors: what the input_fn returned, nested.
    """
    is_open_one = [t for t in tf.nest.flatten(tensors) if isinstance(t, tf.Tensor) and is_open(t.shape)]
    if is_open_one:
        _tf.logging.warning(
            "npu_shim: the training input_fn gives tensors, and the batch dimension of %s %s is not known: a card compiles "
            "the graph for each size it meets. Return the dataset instead of its iterator's tensors, or write batch(n, "
            "drop_remainder=True).",
            is_open_one[0].name,
            is_open_one[0].shape,
        )


def _say_what_is_dropped(batching: Batching) -> None:
    """One log line with the count where it is known.

    Raises:
        ValueError: there is not one full batch.
    """
    size = batching.size
    examples = _tf_data.cardinality(batching.examples)
    if examples < 0:
        _tf.logging.info("npu_shim: batch size %d made static; a smaller last batch is dropped.", size)
        return
    if examples < size:
        raise ValueError(
            f"The training input has {examples:,} examples, fewer than one batch of {size:,}: no full batch is left. "
            f"Use a batch size of at most {examples:,}, or repeat() before batch()."
        )
    if examples % size:
        _tf.logging.info(
            "npu_shim: batch size %d made static; drops %s%s of %s examples per epoch.",
            size,
            "" if batching.all_used else "up to ",
            f"{examples % size:,}",
            f"{examples:,}",
        )


def _only_full(dataset: Any, size: int, dropped: Dropped | None) -> Any:
    """Keeps the elements whose open dimensions are all ``size``; ``dropped`` counts the others."""

    @tf.autograph.experimental.do_not_convert
    def is_full(*element: Any) -> Any:
        counts = open_sizes(element)
        with tf.control_dependencies([check_sizes(counts, size, smallest=0)]):
            full = tf.equal(counts[0], size)
        return full if dropped is None else dropped.unless_full(full, counts[0])

    return dataset.filter(is_full)
