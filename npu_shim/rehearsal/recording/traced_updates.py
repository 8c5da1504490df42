"""The tf.functions that train: those in which an update of an optimizer was traced."""

from __future__ import annotations

import threading
import weakref
from typing import Generic, TypeVar

import tensorflow as tf

from npu_shim._tensorflow import tf_session
from npu_shim._tensorflow.types import Function, Result, TracedFunction
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.recorder import Watcher

_CALL = "function"
_KERAS = ("fit", "train_on_batch", "test_on_batch", "predict_on_batch", "evaluate", "predict")  # which count themselves


_Update = TypeVar("_Update")


class TracedUpdates(Generic[_Update]):
    """The calls of tf.functions in eager code, without an op for it in their graph.

    Args:
        watcher: knows in which calls this thread is.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._calling = threading.local()  # ``function``: the outermost one that runs in this thread, or None
        # function -> optimizer -> what trains() was given
        self._training: weakref.WeakKeyDictionary[TracedFunction, dict[int, _Update]] = weakref.WeakKeyDictionary()

    def watch(self) -> None:
        """Watch the calls of all tf.functions of this process."""
        methods.wrap_methods(tf_session.FUNCTION, ("__call__",), self._call_and_count)

    def function_being_traced(self) -> Function | None:
        """Return the function that is being traced, or None."""
        return getattr(self._calling, "function", None)

    def remember_update(self, number: int, update: _Update) -> None:
        """Remember that the function which is being traced makes a step of an optimizer."""
        function = self.function_being_traced()
        if function is not None:
            self._training.setdefault(function, {})[number] = update

    def count_call(self, function: Function, result: Result) -> None:
        """Count the steps of a call of a function that trains."""
        raise NotImplementedError

    def _call_and_count(self, original: Function, function: Function, *args: object, **kwargs: object) -> Result:
        if self._watcher.is_inside(_CALL, *_KERAS):
            return original(function, *args, **kwargs)
        self._watcher.enter(_CALL)
        self._calling.function = function
        try:
            result = original(function, *args, **kwargs)
        finally:
            self._calling.function = None
            self._watcher.leave(_CALL)
        if function in self._training and tf.executing_eagerly():
            self.count_call(function, result)
        return result
