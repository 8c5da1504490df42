"""Find the method of Keras, or the loop of the script, that reads a dataset now."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import NamedTuple

from npu_shim._tensorflow import script_frames

KERAS_MODULES = ("keras.", "tf_keras.", "tensorflow.python.keras.", "tensorflow_core.python.keras.")
_TRAINING = frozenset({"fit", "fit_generator", "train_on_batch"})
_NO_TRAINING = frozenset({"evaluate", "evaluate_generator", "predict", "predict_generator", "test_on_batch"})
LOOP, ITERATOR = "the loop", "the iterator"


class ReadingCall(NamedTuple):
    """A call that reads a dataset.

    Attributes:
        method: of Keras, ``LOOP`` or ``ITERATOR``.
        line: of the script.
    """

    method: str
    line: str

    def __str__(self) -> str:
        return f"{self.method} ({self.line})"

    @property
    def is_keras(self) -> bool:
        """Return True if Keras reads the dataset."""
        return self.method in _TRAINING or self.method in _NO_TRAINING

    @property
    def trains(self) -> bool:
        """Return True if Keras trains on the dataset."""
        return self.method in _TRAINING


def current_reading_call() -> ReadingCall | None:
    """Return the method of Keras, or the loop of the script, that reads a dataset now; None if other code reads it.

    Keras' iterators do not know for which method they are made, so the call stack is the source. The evaluation in
    ``fit`` is evaluation.
    """
    method: str | None = None
    is_first = True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name, module = frame.f_code.co_name, frame.f_globals.get("__name__", "")
        if module.startswith("npu_shim."):
            frame = frame.f_back
            continue
        path = frame.f_code.co_filename
        if module.startswith(KERAS_MODULES):
            if name in _NO_TRAINING or name in _TRAINING and method not in _NO_TRAINING:
                method = name
        elif method is not None and not os.path.abspath(path).startswith(script_frames.LIBRARIES):
            return ReadingCall(method, f"{path}:{frame.f_lineno}")
        elif is_first and not script_frames.is_library(path):
            return ReadingCall(LOOP, f"{path}:{frame.f_lineno}")
        is_first = False
        frame = frame.f_back
    return None
