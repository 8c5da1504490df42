"""Zeros in the place of results of a run or call that does not happen."""

from __future__ import annotations

import numpy as np

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Structure, Tensor, TensorShape, Value


def zeros_like_fetch(tensor: Tensor) -> Value:
    """Return zeros for a fetched tensor; unknown sizes are 1, those of strings 0, as if no variable lacked a value."""
    if tensor.dtype.base_dtype in (tf.string, tf.variant, tf.resource):
        empty = np.full(_sizes_without_unknown(tensor.shape, 0), b"", dtype=object)
        return empty if empty.shape else b""
    array = np.zeros(_sizes_without_unknown(tensor.shape), tensor.dtype.base_dtype.as_numpy_dtype)
    return array if array.shape else array[()]


def zeros_like_output(output: Structure) -> Structure:
    """Return zeros for an output of a tf.function, also inside an optional value."""
    if isinstance(output, tf.experimental.Optional):
        return tf.experimental.Optional.from_value(tf.nest.map_structure(zeros_like_output, output.element_spec))
    if isinstance(output, (tf.Tensor, tf.TensorSpec)):
        return tf.zeros(_sizes_without_unknown(output.shape), output.dtype)
    return output


def _sizes_without_unknown(shape: TensorShape, unknown: int = 1) -> list[int]:
    return [] if shape.rank is None else [unknown if size is None else int(size) for size in shape.as_list()]
