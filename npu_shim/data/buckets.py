"""Batch sequences by length, so that batches have few shapes."""

from __future__ import annotations

from typing import Callable, Sequence

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Dataset, Structure, Tensor

tf = tf_api.tf


def bucket_by_length(
    dataset: Dataset,
    length_of: Callable[..., Tensor],
    lengths: Sequence[int],
    batch_size: int | Sequence[int],
    padding_values: Structure = None,
    drop_remainder: bool = True,
    padded_shapes: Structure = None,
) -> Dataset:
    """Batch sequences of similar length, each padded to the next of a fixed set of lengths.

    A sequence of length n is padded to the smallest L in ``lengths`` with
    n <= L. The NPU compiles one graph for each L instead of one for the longest
    sequence of each batch.

    Args:
        dataset: a tf.data.Dataset of single examples.
        length_of: called with the components of an example; returns its length, an int32 scalar.
        lengths: the lengths to pad to, in increasing order.
        batch_size: examples in a batch, or one number for each length.
        padding_values: as for Dataset.padded_batch; zeros by default.
        drop_remainder: drop the partial last batch of each length, which would have another shape.
        padded_shapes: as for Dataset.padded_batch; every unknown dimension is padded by default.
    Returns:
        A tf.data.Dataset of batches.
    Raises:
        ValueError: if lengths do not increase, or batch_size has another number of entries.
        tf.errors.OpError: at run time, for a sequence longer than the last length.
    """
    wanted = [int(n) for n in lengths]
    if not wanted or wanted[0] < 1 or sorted(set(wanted)) != wanted:
        raise ValueError(
            f"lengths={lengths!r} is not allowed: it must be increasing numbers of at least 1, like [16, 32, 64]."
        )
    sizes = [batch_size] * len(wanted) if isinstance(batch_size, int) else [int(n) for n in batch_size]
    if len(sizes) != len(wanted) or min(sizes) < 1:
        raise ValueError(
            f"batch_size={batch_size!r} is not allowed: it must be a number of at least 1, or {len(wanted)} of "
            "them, one for each length."
        )

    def checked_length(*example: Structure) -> Tensor:
        length = tf.cast(length_of(*example), tf.int32)
        message = [
            f"npu_shim: bucket_by_length has lengths up to {wanted[-1]}, but the data have a longer sequence:",
            length,
        ]
        with tf.control_dependencies([tf_api.v1.debugging.Assert(length <= wanted[-1], message)]):
            return tf.identity(length)

    return dataset.apply(
        tf.data.experimental.bucket_by_sequence_length(
            checked_length,
            [n + 1 for n in wanted],
            sizes + sizes[-1:],
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            pad_to_bucket_boundary=True,
            drop_remainder=drop_remainder,
        )
    )
