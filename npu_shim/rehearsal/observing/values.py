"""Values of Python and tensors that a script passes, and the functions that it calls."""

from __future__ import annotations

import contextlib
import inspect
import numbers
from typing import TYPE_CHECKING

import numpy as np

from npu_shim._tensorflow import tf_api

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Value

tf = tf_api.tf


def note_value(seen: Seen, value: Value) -> Value:
    """Note if a value is of Python or a tensor as ``is``, a tensor's ``dtype``, and a sequence's ``length``."""
    if isinstance(value, (tf.Tensor, tf.Variable)):
        seen.note("is", "tensor")
        seen.note("dtype", value.dtype.base_dtype.name)
    elif isinstance(value, (numbers.Number, np.bool_)):
        seen.note("is", "python")
    else:
        seen.note("is", "none" if value is None else "other")
        if isinstance(value, (list, tuple, range, dict, set)):
            seen.note("length", len(value))
    return value


def note_model(seen: Seen, value: Value) -> Value:
    """Note if an object is a model of Keras as ``is``, and if eager execution is on as ``eager``."""
    seen.note("is", "keras" if isinstance(value, tf.keras.Model) else "other")
    seen.note("eager", tf.executing_eagerly())
    return value


def note_parameters(seen: Seen, value: Value) -> Value:
    """Note the names of the parameters of a function as ``parameters``."""
    with contextlib.suppress(TypeError, ValueError):  # functions in C have no signature
        seen.note("parameters", tuple(inspect.signature(value).parameters))
    return value
