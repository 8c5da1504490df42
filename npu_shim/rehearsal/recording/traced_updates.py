"""The tf.functions that train: those in which an update of an optimizer was traced."""

from __future__ import annotations

import threading
import weakref
from typing import Generic, TypeVar

import tensorflow as tf

from npu_shim._tensorflow import tf_recording, tf_session
from npu_shim._tensorflow.types import Function, Result, TracedFunction
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.recorder import Watcher

_CALL = "function"
_KERAS = ("fit", "train_on_batch", "test_on_batch", "predict_on_batch", "evaluate", "predict")  # which count themselves


_Number = TypeVar("_Number")
_Update = TypeVar("_Update")


class TracedUpdates(Generic[_Number, _Update]):
    """The calls of tf.functions in eager code, without an op for it in their graph.

    Args:
        watcher: knows in which calls this thread is.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._calling = threading.local()  # ``functions``: those that run in this thread, the outermost first
        self._latest: list[TracedFunction] = []  # the same of the last thread that called one: replicas have threads
        # function -> optimizer -> what remember_update() was given
        self._training: weakref.WeakKeyDictionary[TracedFunction, dict[_Number, _Update]] = weakref.WeakKeyDictionary()

    def watch(self) -> None:
        """Watch the calls of all tf.functions of this process."""
        methods.wrap_methods(tf_session.FUNCTION, ("__call__",), self._call_and_count)
        methods.wrap_methods(tf_session.FUNCTION, ("get_concrete_function",), self._note_traced_function)
        methods.wrap_methods(tf_recording.ConcreteFunction, ("__call__",), self._call_and_count)

    def function_being_traced(self) -> Function | None:
        """Return the outermost function that is being traced, or None."""
        return next(iter(self._running_functions()), None)

    def remember_update(self, number: _Number, update: _Update) -> None:
        """Remember that the function which is being traced, and those that call it, make a step of an optimizer."""
        for function in self._running_functions():
            self._training.setdefault(function, {})[number] = update

    def count_call(self, function: Function, result: Result) -> None:
        """Count the steps of a call of a function that trains."""
        raise NotImplementedError

    def _running_functions(self) -> list[TracedFunction]:
        return getattr(self._calling, "functions", None) or self._latest

    def _call_and_count(self, original: Function, function: Function, *args: object, **kwargs: object) -> Result:
        if self._watcher.is_inside(*_KERAS):
            return original(function, *args, **kwargs)
        with self._watcher.inside(_CALL) as outermost:
            result = self._note_traced_function(original, function, *args, **kwargs)
        if outermost and function in self._training and tf.executing_eagerly():
            self.count_call(function, result)
        return result

    def _note_traced_function(self, original: Function, function: Function, *args: object, **kwargs: object) -> Result:
        functions: list[TracedFunction] = self._calling.__dict__.setdefault("functions", [])
        self._latest = functions
        functions.append(function)
        try:
            result = original(function, *args, **kwargs)
        finally:
            functions.pop()
        updates = self._training.get(function)
        if updates is not None:
            for caller in functions:  # the call may have traced nothing
                self._training.setdefault(caller, {}).update(updates)
            if isinstance(result, tf_recording.ConcreteFunction):
                self._training[result] = updates
        return result
