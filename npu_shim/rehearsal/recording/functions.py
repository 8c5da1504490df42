"""Run tf.functions and Keras models without XLA, which compiles no op that records."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

import tensorflow as tf

from npu_shim.rehearsal.recording import methods

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, KerasModel, Result


def without_xla() -> None:
    """Make ``tf.function`` and ``compile`` of Keras ignore jit_compile=True from now on."""
    methods.wrap(tf.keras.Model, ("compile",), _compile_model)
    original = tf.function

    @functools.wraps(original)
    def function(*args: object, **kwargs: object) -> Result:
        for name in ("jit_compile", "experimental_compile"):
            if kwargs.get(name):
                kwargs[name] = False
        return original(*args, **kwargs)

    for module in (tf, tf.compat.v2, tf.compat.v1):
        if getattr(module, "function", None) is original:
            setattr(module, "function", function)


def _compile_model(original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
    if "jit_compile" in inspect.signature(original).parameters:
        kwargs["jit_compile"] = False
    return original(model, *args, **kwargs)
