"""A static batch dimension for training input, without which the NPU recompiles for each batch size.

A dataset that is batched without ``drop_remainder`` ends with a partial batch.
Therefore its batch dimension is dynamic. ``enforce_static_batch`` makes it
static: full batches keep their content, order and randomness, and partial
batches are dropped.
"""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.types import Dataset, Structure, Tensor
from npu_shim.data.batching import (
    Batching,
    batch_size_check_op,
    check_dataset,
    dynamic_first_dimensions,
    find_batching_steps,
    has_dynamic_batch,
    is_dynamic,
    map_arguments_as_element,
    with_batch_dimension,
)
from npu_shim.data.dropped_examples import DroppedExamples
from npu_shim.data.dropping import dropping_steps, has_random_order, number_of_examples

tf = tf_api.tf


def enforce_static_batch(dataset: Dataset) -> Dataset:
    """Return the dataset with a static batch dimension; partial batches are dropped.

    Works on ``batch``, ``padded_batch`` and ``map_and_batch`` followed by
    ``repeat``, ``shuffle``, ``prefetch``, ``cache``, ``take``, ``skip``,
    ``shard``, ``filter``, ``zip``, ``concatenate`` or a ``map`` that keeps the
    batch dimension. A dataset that is static already is returned unchanged, and
    so is a dataset of unknown batch size, with a warning in the log.

    If the size of the data is known, a log line reports at once how many
    examples are dropped. Otherwise they are counted while they are read, and
    reported when training ends. The result is the same on the NPU and the CPU.

    Args:
        dataset: a tf.data.Dataset (of TF 1 or 2) whose elements are batches.
    Returns:
        A tf.data.Dataset with the same full batches.
    Raises:
        TypeError: if dataset is not a tf.data.Dataset.
        ValueError: if the dataset is known to have fewer examples than one batch.
        tf.errors.InvalidArgumentError: at run time, if a ``map`` after
            ``batch`` changes the batch dimension.
    """
    check_dataset(dataset)
    if not has_dynamic_batch(dataset):
        for dropping in dropping_steps(dataset):
            examples = number_of_examples(dropping.examples)
            _check_at_least_one_batch(-1 if examples is None else examples, dropping.size)
        return dataset
    batching = find_batching_steps(dataset)
    if batching is None:
        tf_api.logging.warning(
            f"npu_shim: the batch dimension of the training input stays dynamic: no batch size found in "
            f"{tf_data.dataset_kind(dataset)}. Write batch(n, drop_remainder=True)."
        )
        return dataset
    size = batching[0].size
    for step in batching:
        _report_dropped(step)
    unknown = any(tf_data.cardinality(step.examples) == tf_data.UNKNOWN_CARDINALITY for step in batching)
    full = _keep_full_batches(dataset, size, DroppedExamples(size) if unknown else None)

    def fix(*element: Structure) -> Structure:
        return with_batch_dimension(map_arguments_as_element(full, element), size)

    return full.map(fix)


def warn_of_dynamic_batch(tensors: Structure) -> None:
    """Log a warning if an input_fn returned tensors (not a dataset) with a dynamic batch dimension.

    Args:
        tensors: the nested tensors that the input_fn returned.
    """
    dynamic = [t for t in tf.nest.flatten(tensors) if isinstance(t, tf.Tensor) and is_dynamic(t.shape)]
    if dynamic:
        tf_api.logging.warning(
            f"npu_shim: the training input_fn returns {dynamic[0].name} with a dynamic batch dimension: "
            f"{dynamic[0].shape}. Return the dataset instead of tensors, or write batch(n, drop_remainder=True)."
        )


def _report_dropped(batching: Batching) -> None:
    """Log the number of dropped examples in one line, if it is known.

    Raises:
        ValueError: if there is no full batch.
    """
    size = batching.size
    examples = tf_data.cardinality(batching.examples)
    if examples < 0:
        tf_api.logging.info(f"npu_shim: batch size {size} made static; a partial last batch is dropped.")
        return
    _check_at_least_one_batch(examples, size)
    if examples % size:
        same = "" if has_random_order(batching.examples) else "the same "
        tf_api.logging.info(
            f"npu_shim: batch size {size} made static; drops {same}{'' if batching.all_used else 'up to '}"
            f"{examples % size:,} of {examples:,} examples per epoch."
        )


def _check_at_least_one_batch(examples: int, size: int) -> None:
    """Raise ValueError if a dataset is known to have fewer examples than one batch."""
    if 0 <= examples < size:
        raise ValueError(
            f"The training input has {examples:,} examples, fewer than one batch of {size:,}. "
            f"Use a batch size of at most {examples:,}, or repeat() before batch()."
        )


def _keep_full_batches(dataset: Dataset, size: int, dropped: DroppedExamples | None) -> Dataset:
    """Keep the elements whose dynamic dimensions are all ``size``; ``dropped`` counts the others."""

    def is_full(*element: Structure) -> Tensor:
        counts = dynamic_first_dimensions(element)
        with tf.control_dependencies([batch_size_check_op(counts, size, smallest=0)]):
            full = tf.equal(counts[0], size)
        return full if dropped is None else dropped.count_unless_full(full, counts[0])

    return dataset.filter(is_full)
