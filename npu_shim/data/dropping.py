"""Find the steps of a pipeline that drop partial batches, and see if they drop the same examples in each pass."""

from __future__ import annotations

from typing import Callable, Iterator, NamedTuple

import numpy as np

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.op_types import BATCHING_DATASETS
from npu_shim._tensorflow.types import Dataset

tf = tf_api.tf
# Sources with one order.
_ORDERED = ("FixedLengthRecord", "Range", "TFRecord", "Tensor", "TensorSlice", "TextLine")
_MIXES = ("DirectedInterleave", "SampleFromDatasets", "ShuffleAndRepeat")
# Steps that keep the number of examples.
KEEPS = ("Cache", "Map", "Model", "Options", "ParallelMap", "Prefetch", "Shuffle")


COUNTER = "npu_shim_counter"  # attribute of a batching step


class DropCounter:
    """Count the examples in the partial batches of a step.

    Args:
        size: examples in a full batch.
    """

    def __init__(self, size: int) -> None:
        self.report: Callable[[int, bool], None] | None = None  # gets their number, and True if there was a full batch
        self._size = size
        self._any = False

    def is_full(self, count: np.ndarray) -> np.bool_:
        """Return True for the number of examples of a full batch, and report that of a partial one."""
        if int(count) == self._size:
            self._any = True
        elif self.report is not None:
            self.report(int(count), self._any)
        return np.bool_(int(count) == self._size)


class DroppingStep(NamedTuple):
    """A batching step with ``drop_remainder=True``.

    Attributes:
        size: examples in a batch.
        examples: the tf.data.Dataset that it reads.
        is_cached: True if a cache keeps the batches.
        counter: counts the examples that the step drops, if TensorFlow does not know their number.
    """

    size: int
    examples: Dataset
    is_cached: bool
    counter: DropCounter | None

    @property
    def is_fixed(self) -> bool:
        """Return True if each pass drops the same examples."""
        return self.is_cached or not has_random_order(self.examples)


def dropping_steps(dataset: Dataset, is_cached: bool = False) -> Iterator[DroppingStep]:
    """Yield the last batching steps of a pipeline, if they drop partial batches and their size is constant."""
    kind = tf_data.dataset_kind(dataset)
    inputs = tf_data.dataset_inputs(dataset)
    if kind in BATCHING_DATASETS:
        size = tf_data.dataset_batch_size(dataset)
        counter = getattr(dataset, COUNTER, None)
        if size and (counter is not None or tf_data.drops_remainder(dataset)):
            yield DroppingStep(size, inputs[0], is_cached, counter)
        return
    for source in inputs:
        yield from dropping_steps(source, is_cached or kind == "Cache")


def has_random_order(dataset: Dataset) -> bool:
    """Return True if the elements of a dataset may come in another order in each pass."""
    kind = tf_data.dataset_kind(dataset)
    inputs = tf_data.dataset_inputs(dataset)
    if kind == "Cache":
        return False
    if kind == "Shuffle" and tf_data.may_reshuffle(dataset) or kind in _MIXES:
        return True
    if kind == "FlatMap" and tf_data.dataset_kind(inputs[0]) == "Tensor":
        return True  # a generator of Python
    return any(map(has_random_order, inputs)) if inputs else not kind.startswith(_ORDERED)


def never_ends(dataset: Dataset) -> bool:
    """Return True if the elements of a dataset certainly never end. A graph gets no operation."""
    if tf.executing_eagerly():
        return tf_data.cardinality(dataset) == tf_data.INFINITE_CARDINALITY
    while not tf_data.repeats_forever(dataset) and tf_data.dataset_kind(dataset) in (*KEEPS, "Filter", "Shard"):
        dataset = tf_data.dataset_inputs(dataset)[0]
    return tf_data.repeats_forever(dataset)


def number_of_examples(dataset: Dataset) -> int | None:
    """Return the number of elements of a dataset, None if it is unknown or infinite. A graph gets no operation."""
    if tf.executing_eagerly():
        count = tf_data.cardinality(dataset)
        return count if count >= 0 else None
    while tf_data.dataset_kind(dataset) in KEEPS:
        dataset = tf_data.dataset_inputs(dataset)[0]
    return tf_data.number_of_slices(dataset)
