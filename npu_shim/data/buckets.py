"""Sequences of many lengths in batches of a few."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from npu_shim import _tf

tf = _tf.tf


def bucket_by_length(
    dataset: Any,
    length_of: Callable[..., Any],
    lengths: Sequence[int],
    batch_size: int | Sequence[int],
    padding_values: Any = None,
    drop_remainder: bool = True,
    padded_shapes: Any = None,
) -> Any:
    """Batches sequences of similar length, each padded to the next of a fixed set of lengths.

    A sequence of length n goes to the smallest length L with n <= L and is
    padded to it: the card compiles one graph for each L, and not one for the
    longest sequence of each batch.

    Args:
        dataset: a tf.data.Dataset of single examples.
        length_of: function of an example (its components as arguments) to its length, an int32 scalar.
        lengths: the lengths to pad to, growing.
        batch_size: examples in a batch, or one number for each length.
        padding_values: as for Dataset.padded_batch; zeros by default.
        drop_remainder: leave out the smaller last batch of each length, which would be another shape.
        padded_shapes: as for Dataset.padded_batch; every unknown dimension is padded by default.
    Returns:
        A tf.data.Dataset of batches.
    Raises:
        ValueError: lengths do not grow, or batch_size has another number of entries.
        tf.errors.OpError: while it runs, for a sequence longer than the last length.
    """
    wanted = [int(n) for n in lengths]
    if not wanted or wanted[0] < 1 or sorted(set(wanted)) != wanted:
        raise ValueError(
            f"lengths={lengths!r} is not allowed: it must be numbers of at least 1 that grow, like [16, 32, 64]."
        )
    sizes = [batch_size] * len(wanted) if isinstance(batch_size, int) else [int(n) for n in batch_size]
    if len(sizes) != len(wanted) or min(sizes) < 1:
        raise ValueError(
            f"batch_size={batch_size!r} is not allowed: it must be a number of at least 1, or {len(wanted)} of "
            "them, one for each length."
        )

    @tf.autograph.experimental.do_not_convert
    def checked(*example: Any) -> Any:
        length = tf.cast(length_of(*example), tf.int32)
        told = [
            f"npu_shim: bucket_by_length has lengths up to {wanted[-1]}, but a sequence of the data is longer:",
            length,
        ]
        with tf.control_dependencies([_tf.v1.debugging.Assert(length <= wanted[-1], told)]):
            return tf.identity(length)

    return dataset.apply(
        tf.data.experimental.bucket_by_sequence_length(
            checked,
            [n + 1 for n in wanted],
            sizes + sizes[-1:],
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            pad_to_bucket_boundary=True,
            drop_remainder=drop_remainder,
        )
    )
