"""How many examples of an epoch do not fill a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from npu_shim import _tf_data
from npu_shim.data.batching import check_dataset, find_batching


class Remainder(NamedTuple):
    """The examples of one pass over the data; None for a number that is not known.

    Attributes:
        batch_size: examples in a full batch.
        examples: examples of one pass; None too when they never end.
        left_over: examples in smaller batches: what ``drop_remainder=True`` drops in each pass.
        padding: rows that ``pad_last_batch`` adds in each pass.
    """

    batch_size: int | None
    examples: int | None
    left_over: int | None
    padding: int | None

    def __str__(self) -> str:
        if self.batch_size is None:
            return "the batch size cannot be found"
        if self.left_over is None:
            return f"batches of {self.batch_size:,}, of an unknown number of examples"
        if self.examples is None:
            return f"batches of {self.batch_size:,}, without end"
        return (
            f"{self.examples:,} examples in batches of {self.batch_size:,}: {self.left_over:,} left over, "
            f"{self.padding:,} rows of padding"
        )


def count_remainder(dataset: Any, read: bool = False) -> Remainder:
    """Counts what one pass over a batched dataset leaves over.

    ``left_over = examples mod batch_size``, summed over concatenated parts.
    Steps behind the batching (``take``, ``skip``, ``shard``, ``filter``) are
    not counted in: it is about the examples that go into the batches. With
    ``repeat`` before ``batch`` one pass is all the epochs together.

    Args:
        dataset: a tf.data.Dataset of batches, as ``batch`` and its like make it.
        read: where TensorFlow does not know the number of examples (of files,
            a generator, behind a ``filter``), read them once to count them.
            That takes as long as one epoch of reading.
    Returns:
        A Remainder; ``print`` shows it in words.
    Raises:
        TypeError: dataset is no tf.data.Dataset.
    """
    check_dataset(dataset)
    batching = find_batching(dataset)
    if batching is None:
        return Remainder(None, None, None, None)
    size = batching[0].size
    examples = left_over = padding = 0
    for one in batching:
        count = _tf_data.cardinality(one.examples)
        if count == _tf_data.UNKNOWN_CARDINALITY and read:
            count = _tf_data.count_elements(one.examples)
        if count == _tf_data.INFINITE_CARDINALITY:
            return Remainder(size, None, 0, 0)
        if count < 0:
            return Remainder(size, None, None, None)
        examples += count
        left_over += count % size
        padding += -count % size
    return Remainder(size, examples, left_over, padding)
