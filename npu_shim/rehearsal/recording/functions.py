"""Record calls of tf.functions, and run them and Keras models without XLA, which compiles no op that records."""

from __future__ import annotations

import functools
import inspect

import tensorflow as tf

from npu_shim._tensorflow import script_frames, tf_session
from npu_shim._tensorflow.types import Function, KerasModel, Result, TracedFunction
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.evaluation import record_call
from npu_shim.rehearsal.recording.kinds import TAPES
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.variables import EagerVariables

_CALL = "call of a function"


def watch_functions(recorder: Recorder, eager_variables: EagerVariables) -> None:
    """Record the calls of tf.functions in eager code: the variables between those that train, the values of others."""

    def call(original: Function, function: TracedFunction, *args: object, **kwargs: object) -> Result:
        if not tf.executing_eagerly():
            return original(function, *args, **kwargs)
        before = recorder.steps, recorder.tapes
        with recorder.inside(_CALL) as outermost:
            if outermost:
                eager_variables.keep_values()
            result = original(function, *args, **kwargs)
        if outermost and (recorder.steps, recorder.tapes) != before:
            eager_variables.record_untrained()
        elif outermost and not recorder.is_inside(TAPES) and script_frames.is_called_directly_by_script():
            name = getattr(function.python_function, "__name__", "function")
            record_call(recorder, name, (args, kwargs), result)
        return result

    methods.wrap_methods(tf_session.FUNCTION, ("__call__",), call)


def disable_xla() -> None:
    """Make ``tf.function`` and ``compile`` of Keras ignore jit_compile=True from now on."""
    methods.wrap_methods(tf.keras.Model, ("compile",), _compile_without_xla)
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


def _compile_without_xla(original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
    if "jit_compile" in inspect.signature(original).parameters:
        kwargs["jit_compile"] = False
    return original(model, *args, **kwargs)
