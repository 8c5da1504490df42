"""Selections with a fixed shape, for ops whose result is as long as the data decide.

The card compiles a graph for each shape it meets. These keep the shape: what is
chosen stands in front, the rest is padding, and a mask says which is which.
They are the same on the card and on the CPU, and gradients flow to what is
chosen as they do through the op that they stand for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from npu_shim import _tf

tf = _tf.tf


class Selection(NamedTuple):
    """values: [size, ...]; valid: bool [size], True for the entries that are real."""

    values: Any
    valid: Any


class Distinct(NamedTuple):
    """values: [size]; valid: bool [size]; index: int32 [n], the place in values of each input."""

    values: Any
    valid: Any
    index: Any


def masked_select(values: Any, mask: Any, size: int | None = None, fill: Any = 0) -> Selection:
    """``tf.boolean_mask(values, mask)`` with a fixed number of rows.

    values[i] for the i with mask[i], in order; then ``fill`` up to ``size``.
    Rows beyond ``size`` are left out. A mean of what is chosen is
    ``tf.reduce_sum(selection.values) / tf.reduce_sum(tf.cast(mask, values.dtype))``.

    Args:
        values: tensor [n, ...].
        mask: bool tensor [n].
        size: how many rows the result has, at most n; n by default, which loses nothing.
        fill: number for the rows that are padding.
    Returns:
        A Selection of values [size, ...].
    Raises:
        ValueError: n is not known, size is not from 1 to n, or mask is not [n].
    """
    values, mask = tf.convert_to_tensor(values), tf.convert_to_tensor(mask)
    count = _length(mask, "mask")
    size = _size(size, count)
    places, valid = _first(mask, count, size)
    chosen = tf.gather(values, places)
    shape = tf.concat([[size], tf.ones([tf.rank(chosen) - 1], tf.int32)], 0)
    kept = tf.logical_and(tf.reshape(valid, shape), tf.ones_like(chosen, tf.bool))
    selected = tf.where(kept, chosen, tf.fill(tf.shape(chosen), tf.cast(fill, chosen.dtype)))
    selected.set_shape(chosen.shape)
    return Selection(selected, valid)


def masked_where(condition: Any, size: int | None = None) -> Selection:
    """``tf.where(condition)``, the places where it holds, with a fixed number of rows.

    Args:
        condition: bool tensor of a fixed shape.
        size: how many rows the result has; all places by default.
    Returns:
        A Selection of int64 values [size, rank of condition]; padding is 0.
    Raises:
        ValueError: the shape is not known, or size is not from 1 to the number of places.
    """
    condition = tf.convert_to_tensor(condition)
    flat = tf.reshape(condition, [-1])
    count = _length(flat, "condition")
    size = _size(size, count)
    places, valid = _first(flat, count, size)
    rows = tf.transpose(tf.unravel_index(places, tf.shape(condition)))
    rows = tf.cast(rows * tf.cast(valid, rows.dtype)[:, None], tf.int64)
    rows.set_shape([size, condition.shape.ndims])
    return Selection(rows, valid)


def top_k_mask(values: Any, k: Any) -> Any:
    """The mask of the k largest entries of the last dimension, for a k that is computed in the graph.

    mask[..., i] holds where fewer than k entries are larger than values[..., i]
    or equal to it and stand before it: exactly min(k, n) are True, the ones that
    ``tf.nn.top_k(values, k)`` gives. A sum of those is
    ``tf.reduce_sum(values * tf.cast(mask, values.dtype), -1)``.

    Args:
        values: numeric tensor [..., n].
        k: int tensor, a scalar or [...].
    Returns:
        A bool tensor of the shape of values.
    Raises:
        ValueError: n is not known.
    """
    values, k = tf.convert_to_tensor(values), tf.convert_to_tensor(k)
    count = tf.compat.dimension_value(values.shape[-1])
    if count is None:
        raise ValueError(
            f"values has shape {values.shape}, but its last dimension must be known: pad it to a fixed length."
        )
    order = tf.nn.top_k(tf.stop_gradient(values), count).indices
    rank = tf.nn.top_k(-order, count).indices  # the inverse permutation
    return tf.cast(rank, k.dtype) < k[..., None]


def unique_padded(values: Any, size: int | None = None) -> Distinct:
    """``tf.unique(values)`` with a fixed number of values.

    The distinct values in the order in which they first appear; padding is
    values[0]. ``tf.gather(result.values, result.index)`` is values where size
    is large enough.

    Args:
        values: numeric tensor [n].
        size: how many values the result has; n by default, which loses nothing.
    Returns:
        A Distinct.
    Raises:
        ValueError: n is not known, or size is not from 1 to n.
    """
    values = tf.convert_to_tensor(values)
    count = _length(values, "values")
    size = _size(size, count)
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


def _first(mask: Any, count: int, size: int) -> Any:
    """The first ``size`` places where a mask holds, and which of them are real."""
    place = tf.range(count)
    # Keys that differ: places where the mask holds come first, each set in order.
    keys = tf.where(mask, count - place, -place)
    places = tf.nn.top_k(keys, size).indices
    return places, tf.range(size) < tf.reduce_sum(tf.cast(mask, tf.int32))


def _length(tensor: Any, name: str) -> int:
    length = tf.compat.dimension_value(tensor.shape[0]) if tensor.shape.ndims == 1 else None
    if length is None:
        raise ValueError(
            f"{name} has shape {tensor.shape}, but must be one dimension of known length: pad it to a fixed "
            "length, as with batch(n, drop_remainder=True)."
        )
    return length


def _size(size: int | None, count: int) -> int:
    if size is None:
        return count
    if not isinstance(size, int) or not 1 <= size <= count:
        raise ValueError(f"size={size!r} is not allowed: it must be an int from 1 to {count}.")
    return size
