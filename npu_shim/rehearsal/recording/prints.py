"""Record the numbers that a script prints or logs, line by line."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import numpy as np

from npu_shim._tensorflow import script_frames
from npu_shim._tensorflow.types import Function, Result, Value
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import PRINT
from npu_shim.rehearsal.recording.printed_numbers import name_and_numbers_of
from npu_shim.rehearsal.recording.recorder import Recorder


def watch_prints(recorder: Recorder) -> None:
    """Record the lines that the script writes to standard output, and those of its loggers."""

    def handle(original: Function, logger: logging.Logger, record: logging.LogRecord) -> Result:
        if record.levelno >= logging.INFO and not script_frames.is_library(record.pathname):
            _record_line(recorder, record.getMessage())
        return original(logger, record)

    setattr(sys, "stdout", _Lines(sys.stdout, recorder))
    methods.wrap_methods(logging.Logger, ("handle",), handle)


class _Lines:
    """A stream that records complete lines of the script, and has all else from another one."""

    def __init__(self, stream: TextIO, recorder: Recorder) -> None:
        self._stream = stream
        self._recorder = recorder
        self._begun = ""

    def __getattr__(self, name: str) -> Value:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        written = self._stream.write(text)
        *lines, self._begun = (self._begun + text).split("\n")
        if lines and script_frames.is_called_by_script():
            for line in lines:
                _record_line(self._recorder, line)
        return written


def _record_line(recorder: Recorder, line: str) -> None:
    """Record each number with the unit of its last digit."""
    name, numbers = name_and_numbers_of(line)
    recorder.record_values(PRINT, [(f"{name} ({place})", np.array(number)) for place, number in enumerate(numbers, 1)])
