"""Sizes that tensors have while the script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim.rehearsal.recording.saved_graphs import SCOPE, add_note

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Value

tf = tf_api.tf


def note_rows(seen: Seen, value: Value) -> Value:
    """Note ``rows`` and ``last``, the first and last dimension of a tensor or an array, and its rank, type and place.

    Of a list or tuple each part is seen, of a named tuple such as that of ``tf.unique`` the first, and of a sparse
    tensor of eager code its values.
    """
    if hasattr(value, "_replace"):
        return value._replace(**{value._fields[0]: note_rows(seen, value[0])})
    if isinstance(value, (list, tuple)):
        return type(value)(note_rows(seen, part) for part in value)
    note_type_and_place(seen, value)
    if not isinstance(value, tf.Tensor):
        if isinstance(value, np.ndarray):
            _note_shape(seen, value.shape)
        elif isinstance(value, tf.SparseTensor) and tf.executing_eagerly():
            _note_shape(seen, value.values.shape.as_list())
        return value
    if value.shape.rank is None:
        seen.note("rank", None)  # masked reductions need one that the graph knows
    if value.shape.is_fully_defined():
        _note_shape(seen, value.shape.as_list())
        return value

    def note(shape: Value) -> None:
        _note_shape(seen, shape.tolist())

    # The value depends on the note, so that it is made whenever the value is computed.
    with tf.name_scope(SCOPE):
        with tf.control_dependencies([add_note(note, [tf.shape(value)], [])]):
            return tf.identity(value)


def _note_shape(seen: Seen, shape: list[int] | tuple[int, ...]) -> None:
    seen.note("rank", len(shape))
    if len(shape):
        seen.note("rows", int(shape[0]))
        seen.note("last", int(shape[-1]))


def note_type_and_place(seen: Seen, value: Value) -> Value:
    """Note the ``dtype`` of a tensor, a variable or an array, and its ``place``.

    The place is ``graph``, ``eager``, ``data`` for functions of tf.data, or ``numpy``; ``python`` for other objects,
    whose type is the name of their class.
    """
    dtype = getattr(value, "dtype", None)
    if isinstance(value, (np.ndarray, np.generic)):
        place = "numpy"
    elif isinstance(value, (tf.Tensor, tf.Variable, tf.SparseTensor, tf.RaggedTensor)):
        place = "data" if tf_data.is_tracing_dataset_function() else "eager" if tf.executing_eagerly() else "graph"
    else:
        place, dtype = "python", None
    seen.note("place", place)
    if place in ("numpy", "python"):
        seen.note("dtype", type(value).__name__ if dtype is None else dtype.name)
    else:
        seen.note("dtype", tf.as_dtype(dtype).base_dtype.name)
    return value
