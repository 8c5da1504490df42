"""Reductions of the rows that a mask selects, without the selection.

``tf.boolean_mask`` has a dynamic number of rows, and the NPU recompiles for each. These functions compute what a
reduction of ``tf.boolean_mask(values, mask)`` computes from tensors that keep the shape of values. No size is
assumed, so no later step can exceed one. Results are the same on the NPU and the CPU, also if the mask selects nothing;
then gradients of other inputs are those of rows of ones, times 0.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Function, Tensor

tf = tf_api.tf


def masked_rows(values: Tensor, mask: Tensor) -> Tensor:
    """Return values in which each row that the mask does not select is a copy of the first selected row.

    What is computed row by row from the result, such as ``tf.math.log(rows)``, is defined wherever it is for
    ``tf.boolean_mask(values, mask)``, and so are its gradients, unless the mask selects nothing. Reduce it with
    ``masked_sum``, ``masked_mean``, ``masked_max`` or ``masked_min`` and the same mask. Gradients flow to the selected
    rows only.

    Args:
        values: tensor of the shape of mask and more dimensions behind it.
        mask: bool tensor [...] of known rank.
    Returns:
        A tensor with the shape of values. If the mask selects no row, numbers are 1.
    Raises:
        ValueError: the rank of mask is unknown or 0, or its shape is not the beginning of that of values.
    """
    mask = tf.convert_to_tensor(mask)
    values, kept, rank = _values_broadcast_mask_and_rank(values, mask)
    axes = list(range(rank))
    number = tf.reshape(tf.cumsum(tf.reshape(tf.cast(mask, tf.int32), [-1])), tf.shape(mask))
    is_first = _values_broadcast_mask_and_rank(values, tf.logical_and(mask, tf.equal(number, 1)))[1]
    if values.dtype == tf.bool:
        row = tf.reduce_any(tf.logical_and(values, is_first), axis=axes, keepdims=True)
        return tf.where(kept, values, tf.logical_or(tf.zeros_like(values), row))
    row = tf.reduce_sum(_fill_unselected(is_first, values, 0), axis=axes, keepdims=True)
    row += tf.cast(tf.equal(masked_count(mask), 0), values.dtype)
    return tf.where(kept, values, tf.stop_gradient(tf.zeros_like(values) + row))


def masked_sum(values: Tensor, mask: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Return ``tf.reduce_sum(tf.boolean_mask(values, mask), axis, keepdims)``.

    Args:
        values: numeric tensor of the shape of mask and more dimensions behind it.
        mask: bool tensor [...] of known rank.
        axis: dimensions of the selected rows, 0 among them; all by default.
        keepdims: keep the reduced dimensions, with the size 1.
    Returns:
        A tensor; 0 if the mask selects no row.
    Raises:
        ValueError: the shapes do not fit, or axis does not contain 0.
    """
    return _reduce_masked(tf.reduce_sum, values, mask, 0, axis, keepdims)


def masked_mean(
    values: Tensor, mask: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    """Return ``tf.reduce_mean(tf.boolean_mask(values, mask), axis, keepdims)``.

    Args:
        values, mask, axis, keepdims: as of masked_sum; values are floating-point numbers.
    Returns:
        A tensor; NaN if the mask selects no row, as the mean of nothing.
    Raises:
        TypeError: values are integers.
        ValueError: the shapes do not fit, or axis does not contain 0.
    """
    values = tf.convert_to_tensor(values)
    if not values.dtype.is_floating:
        raise TypeError(f"values are {values.dtype.name}, but must be floating-point numbers. Cast them first.")
    exact = tf.float64 if values.dtype == tf.float64 else tf.float32  # float16 cannot count to 2,049
    numbers = tf.cast(values, exact)
    total = _reduce_masked(tf.reduce_sum, numbers, mask, 0, axis, keepdims)
    count = _reduce_masked(tf.reduce_sum, tf.ones_like(numbers), mask, 0, axis, keepdims)
    return tf.cast(total / count, values.dtype)


def masked_max(values: Tensor, mask: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Return ``tf.reduce_max(tf.boolean_mask(values, mask), axis, keepdims)``.

    Args:
        values, mask, axis, keepdims: as of masked_sum.
    Returns:
        A tensor; -inf, or the least integer, if the mask selects no row.
    Raises:
        ValueError: the shapes do not fit, or axis does not contain 0.
    """
    values = tf.convert_to_tensor(values)
    return _reduce_masked(tf.reduce_max, values, mask, -_extreme_of_dtype(values, -1), axis, keepdims)


def masked_min(values: Tensor, mask: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Return ``tf.reduce_min(tf.boolean_mask(values, mask), axis, keepdims)``.

    Args:
        values, mask, axis, keepdims: as of masked_sum.
    Returns:
        A tensor; inf, or the greatest integer, if the mask selects no row.
    Raises:
        ValueError: the shapes do not fit, or axis does not contain 0.
    """
    values = tf.convert_to_tensor(values)
    return _reduce_masked(tf.reduce_min, values, mask, _extreme_of_dtype(values, 1), axis, keepdims)


def masked_count(mask: Tensor) -> Tensor:
    """Return ``tf.shape(tf.where(mask))[0]``, the number of True entries, as an int32 scalar."""
    return tf.reduce_sum(tf.cast(mask, tf.int32))


def _extreme_of_dtype(values: Tensor, sign: int) -> float:
    if values.dtype.is_floating:
        return float("inf")
    return int(values.dtype.max) if sign > 0 else -int(values.dtype.min)


def _reduce_masked(
    reduce: Function, values: Tensor, mask: Tensor, fill: float, axis: int | Sequence[int] | None, keepdims: bool
) -> Tensor:
    values, kept, rank = _values_broadcast_mask_and_rank(values, mask)
    behind = values.shape.ndims - rank  # dimensions of a row
    given = range(behind + 1) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = {one % (behind + 1) for one in given if -behind - 1 <= one <= behind}
    if 0 not in axes or len(axes) != len(given):
        raise ValueError(
            f"axis={axis!r} is not allowed: it must contain 0, the selected rows, and no dimension but "
            f"those from 0 to {behind}."
        )
    filled = _fill_unselected(kept, values, fill)
    result = reduce(filled, axis=[*range(rank), *(one + rank - 1 for one in sorted(axes) if one)], keepdims=keepdims)
    if keepdims and rank > 1:
        result = tf.squeeze(result, list(range(rank - 1)))
    return result


def _values_broadcast_mask_and_rank(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return values, the mask broadcast to their shape, and the rank of the mask."""
    values, mask = tf.convert_to_tensor(values), tf.convert_to_tensor(mask)
    rank = mask.shape.ndims
    if not rank or values.shape.ndims is None or not mask.shape.is_compatible_with(values.shape[:rank]):
        raise ValueError(
            f"mask has shape {mask.shape}, but must have the first dimensions of values, {values.shape}, and a known "
            "rank of at least 1."
        )
    behind = values.shape.ndims - rank
    kept = tf.reshape(mask, tf.concat([tf.shape(mask), tf.ones([behind], tf.int32)], 0)) if behind else mask
    return values, tf.logical_and(kept, tf.ones_like(values, tf.bool)), rank


def _fill_unselected(is_selected: Tensor, values: Tensor, fill: float) -> Tensor:
    return tf.where(is_selected, values, tf.fill(tf.shape(values), tf.constant(fill, values.dtype)))
