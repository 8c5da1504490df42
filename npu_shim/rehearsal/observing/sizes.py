"""Sizes that tensors have while the script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Value

tf = tf_api.tf


def note_rows(seen: Seen, value: Value) -> Value:
    """Note the first dimension of a tensor, or of each of several tensors, as ``rows``."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(note_rows(seen, part) for part in value)
    if not isinstance(value, tf.Tensor) or value.shape.rank == 0:
        return value
    rows = tf.compat.dimension_value(value.shape[0]) if value.shape.rank else None
    if rows is not None:
        seen.note("rows", rows)
        return value

    def note(rows: Value) -> None:
        seen.note("rows", int(rows))

    # The value depends on the note, so that it is made whenever the value is computed.
    with tf.control_dependencies([tf.numpy_function(note, [tf.shape(value)[0]], [])]):
        return tf.identity(value)
