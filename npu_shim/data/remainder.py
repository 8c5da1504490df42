"""Count the examples of an epoch that do not fill a batch."""

from __future__ import annotations

from typing import NamedTuple

from npu_shim._tensorflow import tf_data
from npu_shim._tensorflow.types import Dataset
from npu_shim.data.batching import check_dataset, find_batching_steps


class Remainder(NamedTuple):
    """The examples of one pass over the data; a number that is unknown is None.

    Attributes:
        batch_size: examples in a full batch.
        examples: examples of one pass; also None if the dataset is infinite.
        left_over: examples in partial batches, which ``drop_remainder=True`` drops in each pass.
        padding: rows that ``pad_last_batch`` adds in each pass.
    """

    batch_size: int | None
    examples: int | None
    left_over: int | None
    padding: int | None

    def __str__(self) -> str:
        if self.batch_size is None:
            return "the batch size is unknown"
        if self.left_over is None:
            return f"batches of {self.batch_size:,}, of an unknown number of examples"
        if self.examples is None:
            return f"batches of {self.batch_size:,}, without end"
        return (
            f"{self.examples:,} examples in batches of {self.batch_size:,}: {self.left_over:,} left over, "
            f"{self.padding:,} rows of padding"
        )


def count_remainder(dataset: Dataset, read: bool = False) -> Remainder:
    """Count the examples in partial batches of one pass over a batched dataset.

    ``left_over = examples mod batch_size``, summed over concatenated parts.
    The examples are those that go into the batches: steps after the batching
    (``take``, ``skip``, ``shard``, ``filter``) do not change the result. With
    ``repeat`` before ``batch``, one pass is all epochs together.

    Args:
        dataset: a tf.data.Dataset of batches from ``batch`` or a similar step.
        read: read all examples once to count them if TensorFlow does not know
            their number (from files, a generator, or after a ``filter``). It
            takes as long as one epoch of reading.
    Returns:
        A Remainder; ``print`` shows it as a sentence.
    Raises:
        TypeError: if dataset is not a tf.data.Dataset.
    """
    check_dataset(dataset)
    batching = find_batching_steps(dataset)
    if batching is None:
        return Remainder(None, None, None, None)
    size = batching[0].size
    examples = left_over = padding = 0
    for step in batching:
        count = tf_data.cardinality(step.examples)
        if count == tf_data.UNKNOWN_CARDINALITY and read:
            count = tf_data.count_elements(step.examples)
        if count == tf_data.INFINITE_CARDINALITY:
            return Remainder(size, None, 0, 0)
        if count < 0:
            return Remainder(size, None, None, None)
        examples += count
        left_over += count % size
        padding += -count % size
    return Remainder(size, examples, left_over, padding)
