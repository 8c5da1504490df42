"""Places and values of the elements that are not zero. The number of results depends on the values."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Tensor


def non_zero(x: Tensor, transpose: bool = False, output_type: DType = tf.int64, name: str | None = None) -> Tensor:
    """Return the indices of the elements that are not zero, in row-major order.

    Args:
        x: tensor of numbers or bools.
        transpose: True for [rank, n] instead of [n, rank].
        output_type: tf.int32 or tf.int64.
        name: name of the ops.
    """
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "non_zero"):
        indices = tf.cast(tf.compat.v2.where(tf.not_equal(x, tf.zeros_like(x))), output_type)
        return tf.transpose(indices) if transpose else indices


nonzero = non_zero


def non_zero_with_value(
    x: Tensor, transpose: bool = False, output_type: DType = tf.int32, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values and indices of the elements of a matrix that are not zero, padded with zeros to static shapes.

    Args:
        x: [rows, columns], of numbers.
        transpose: True for all rows, then all columns, in the indices; False for row and column of each element.
        output_type: tf.int32 or tf.int64.
        name: name of the ops.
    Returns:
        value, [rows columns]; index, [2 rows columns]; count, [1], the number of elements that are not zero.
    """
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "non_zero_with_value"):
        size = tf.size(x)
        indices = non_zero(x, False, output_type)
        count = tf.shape(indices)[0]
        index = tf.pad(indices, [[0, size - count], [0, 0]])
        value = tf.pad(tf.gather_nd(x, indices), [[0, size - count]])
        index = tf.transpose(index) if transpose else index
        total = x.shape.num_elements()
        value.set_shape([total])
        return (
            value,
            tf.reshape(index, [2 * size if total is None else 2 * total]),
            tf.reshape(tf.cast(count, output_type), [1]),
        )


def nonzerowithvalue(
    x: Tensor, transpose: bool = False, output_type: DType = tf.int64, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, indices and number of the elements that are not zero. See non_zero_with_value."""
    return non_zero_with_value(x, transpose, output_type, name)


def non_zero_with_value_shape(
    value: Tensor, index: Tensor, count: Tensor, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the part of the results of non_zero_with_value with transpose=True that is no padding.

    Args:
        value: [size].
        index: [2 size], all rows, then all columns.
        count: [1].
        name: name of the ops.
    Returns:
        The first count values; and [2 count], their rows, then their columns.
    """
    with tf.name_scope(name or "non_zero_with_value_shape"):
        value, number = tf.convert_to_tensor(value), tf.reshape(tf.cast(count, tf.int32), [])
        return value[:number], tf.reshape(tf.reshape(index, [2, -1])[:, :number], [-1])


def non_zero_with_value_shape_v2(
    value: Tensor, index: Tensor, count: Tensor, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the part of the results of non_zero_with_value that is no padding. See non_zero_with_value_shape."""
    return non_zero_with_value_shape(value, index, count, name or "non_zero_with_value_shape_v2")
