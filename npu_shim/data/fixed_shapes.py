"""Selections with a static shape, for ops whose result has a dynamic shape.

The NPU recompiles a graph for each new shape. These functions keep the shape:
the selected entries come first, the rest is padding, and a mask marks the
selected entries. Results are the same on the NPU and the CPU. Gradients flow to
the selected entries, as in the op that each function replaces.
"""

from __future__ import annotations

from typing import NamedTuple

from npu_shim._tensorflow import tf_api, tf_recording
from npu_shim._tensorflow.types import Tensor

tf = tf_api.tf


class Selection(NamedTuple):
    """values: [size, ...]; valid: bool [size], True for real entries, False for padding."""

    values: Tensor
    valid: Tensor


class Distinct(NamedTuple):
    """values: [size]; valid: bool [size]; index: int32 [n], the position in values of each input."""

    values: Tensor
    valid: Tensor
    index: Tensor


def masked_select(values: Tensor, mask: Tensor, size: int | None = None, fill: float = 0) -> Selection:
    """Return ``tf.boolean_mask(values, mask)`` with a static number of rows.

    values[i] for each i with mask[i], in order; then ``fill`` up to ``size``.
    Rows beyond ``size`` are dropped. The mean of the selected values is
    ``tf.reduce_sum(selection.values) / tf.reduce_sum(tf.cast(mask, values.dtype))``.

    Args:
        values: tensor [n, ...].
        mask: bool tensor [n].
        size: number of rows of the result, at most n; n by default, which drops nothing.
        fill: value of the padding rows.
    Returns:
        A Selection of values [size, ...].
    Raises:
        ValueError: if n is unknown, size is not in 1..n, or mask is not [n].
    """
    values, mask = tf.convert_to_tensor(values), tf.convert_to_tensor(mask)
    count = _static_length(mask, "mask")
    size = _checked_size(size, count)
    places, valid = _first_true_places_and_is_real(mask, count, size)
    chosen = tf.gather(values, places)
    shape = tf.concat([[size], tf.ones([tf.rank(chosen) - 1], tf.int32)], 0)
    kept = tf.logical_and(tf.reshape(valid, shape), tf.ones_like(chosen, tf.bool))
    selected = tf.where(kept, chosen, tf.fill(tf.shape(chosen), tf.cast(fill, chosen.dtype)))
    selected.set_shape(chosen.shape)
    return Selection(selected, valid)


def masked_where(condition: Tensor, size: int | None = None) -> Selection:
    """Return ``tf.where(condition)``, the indices of True entries, with a static number of rows.

    Args:
        condition: bool tensor of static shape.
        size: number of rows of the result; the number of entries by default.
    Returns:
        A Selection of int64 values [size, rank of condition]; padding is 0.
    Raises:
        ValueError: if the shape is unknown, or size is not in 1..number of entries.
    """
    condition = tf.convert_to_tensor(condition)
    flat = tf.reshape(condition, [-1])
    count = _static_length(flat, "condition")
    size = _checked_size(size, count)
    places, valid = _first_true_places_and_is_real(flat, count, size)
    rows = tf.transpose(tf.unravel_index(places, tf.shape(condition)))
    rows = tf.cast(rows * tf.cast(valid, rows.dtype)[:, None], tf.int64)
    rows.set_shape([size, condition.shape.ndims])
    return Selection(rows, valid)


def top_k_mask(values: Tensor, k: Tensor) -> Tensor:
    """Return the mask of the k largest entries of the last dimension, for a k that is a tensor.

    mask[..., i] is True if fewer than k entries are larger than values[..., i],
    or equal to it and before it. Exactly k entries are True: those that
    ``tf.nn.top_k(values, k)`` returns. Their sum is
    ``tf.reduce_sum(values * tf.cast(mask, values.dtype), -1)``.

    Args:
        values: numeric tensor [..., n].
        k: int tensor, a scalar or [...], at most n.
    Returns:
        A bool tensor with the shape of values.
    Raises:
        ValueError: if n is unknown.
        tf.errors.InvalidArgumentError: at run time, if k is greater than n, as in ``tf.nn.top_k``.
    """
    values, k = tf.convert_to_tensor(values), tf.convert_to_tensor(k)
    count = tf.compat.dimension_value(values.shape[-1])
    if count is None:
        raise ValueError(
            f"values has shape {values.shape}, but its last dimension must be static. Pad it to a fixed length."
        )
    largest = tf.reduce_max(k)
    message = [
        f"npu_shim: {tf_recording.script_line_text()}: values has {count} elements in its last dimension, and k is "
        f"greater. Take tf.minimum(k, {count}). Greatest k:",
        largest,
    ]
    k = _checked_at_run_time(k, largest <= count, message)
    order = tf.nn.top_k(tf.stop_gradient(values), count).indices
    rank = tf.nn.top_k(-order, count).indices  # the inverse permutation
    return tf.cast(rank, k.dtype) < k[..., None]


def sequence_mask_like(lengths: Tensor, values: Tensor) -> Tensor:
    """Return ``tf.sequence_mask(lengths)``, as wide as the last dimension of values.

    mask[..., i] = i < lengths[...]. Without values, the mask is as wide as the greatest of the lengths.

    Args:
        lengths: int tensor [...].
        values: tensor [..., width].
    Returns:
        A bool tensor [..., width].
    Raises:
        tf.errors.InvalidArgumentError: at run time, if a length is greater than width.
    """
    lengths, width = tf.convert_to_tensor(lengths), tf.shape(values)[-1]
    greatest = tf.reduce_max(lengths)
    message = [
        f"npu_shim: {tf_recording.script_line_text()}: a length is greater than the last dimension of the values. Pad "
        "them to the greatest length. Width of the values, greatest length:",
        width,
        greatest,
    ]
    checked = _checked_at_run_time(lengths, greatest <= tf.cast(width, lengths.dtype), message)
    return tf.sequence_mask(checked, width)


def unique_padded(values: Tensor, size: int | None = None) -> Distinct:
    """Return ``tf.unique(values)`` with a static number of values.

    The distinct values are in order of first appearance; padding is values[0].
    ``tf.gather(result.values, result.index)`` equals values if size is large
    enough.

    Args:
        values: numeric tensor [n].
        size: number of values of the result; n by default, which drops nothing.
    Returns:
        A Distinct.
    Raises:
        ValueError: if n is unknown, or size is not in 1..n.
    """
    values = tf.convert_to_tensor(values)
    count = _static_length(values, "values")
    size = _checked_size(size, count)
    order = tf.argsort(values, stable=True)
    ordered = tf.gather(values, order)
    starts = tf.concat([[True], tf.not_equal(ordered[1:], ordered[:-1])], 0)
    group = tf.cumsum(tf.cast(starts, tf.int32)) - 1
    first = tf.math.unsorted_segment_min(order, group, count)  # of each group; the largest int of an empty one
    by_appearance = tf.argsort(first, stable=True)
    index = tf.gather(tf.gather(tf.argsort(by_appearance), group), tf.argsort(order))
    valid = tf.range(size) <= group[-1]
    places = tf.where(valid, tf.gather(first, by_appearance)[:size], tf.zeros([size], tf.int32))
    return Distinct(tf.gather(values, places), valid, index)


def _checked_at_run_time(tensor: Tensor, condition: Tensor, message: list[str | Tensor]) -> Tensor:
    """Return a tensor that raises InvalidArgumentError with a message if a condition is False when it is computed."""
    check = tf_api.v1.debugging.Assert(condition, message)
    with tf.control_dependencies([] if tf.executing_eagerly() else [check]):
        return tf.identity(tensor)


def _first_true_places_and_is_real(mask: Tensor, count: int, size: int) -> tuple[Tensor, Tensor]:
    """Return the first ``size`` places where a mask is True, and a bool for each: True if it is real."""
    place = tf.range(count)
    # Distinct keys: places where the mask is True come first, both groups in order.
    keys = tf.where(mask, count - place, -place)
    places = tf.nn.top_k(keys, size).indices
    return places, tf.range(size) < tf.reduce_sum(tf.cast(mask, tf.int32))


def _static_length(tensor: Tensor, name: str) -> int:
    length = tf.compat.dimension_value(tensor.shape[0]) if tensor.shape.ndims == 1 else None
    if length is None:
        raise ValueError(
            f"{name} has shape {tensor.shape}, but must have one dimension of static length. Pad it to a fixed "
            "length, as with batch(n, drop_remainder=True)."
        )
    return length


def _checked_size(size: int | None, count: int) -> int:
    if size is None:
        return count
    if not isinstance(size, int) or not 1 <= size <= count:
        raise ValueError(f"size={size!r} is not allowed: it must be an int from 1 to {count}.")
    return size
