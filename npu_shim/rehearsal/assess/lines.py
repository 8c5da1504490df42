"""Lines of the script: those that run a graph, and those that create an operation."""

from __future__ import annotations

import os
import re
import tempfile

from npu_shim._tensorflow import script_frames
from npu_shim._tensorflow.types import Operation

_TEMPORARY = re.escape(os.path.join(tempfile.gettempdir(), ""))
_CONVERTED = re.compile(_TEMPORARY + r"(__autograph_generated_file|tmp)\w+\.py$")  # what AutoGraph has written
_MOST = 3  # frames of an operation


def running_script_line(folder: str) -> str:
    """Return the innermost line of the script that is running, relative to a folder; "an unknown line" without one."""
    for frame in script_frames.running_frames():
        if not _CONVERTED.match(frame.f_code.co_filename):
            return f"{relative_path(frame.f_code.co_filename, folder)}:{frame.f_lineno}"
    return "an unknown line"


def creating_lines(op: Operation, folder: str) -> list[str]:
    """Return the lines of the script that create an operation, the innermost first."""
    lines: list[str] = []
    for frame in reversed(list(op.traceback or ())):
        if script_frames.is_starter_of_script(frame[0]):
            break
        text = f"{relative_path(frame[0], folder)}:{frame[1]}"
        if not script_frames.is_library(frame[0]) and text not in lines:
            lines.append(text)
    return lines[:_MOST]


def relative_path(path: str, folder: str) -> str:
    """Return a path relative to a folder if it is below."""
    full = os.path.abspath(path)
    return os.path.relpath(full, folder) if full.startswith(folder + os.sep) else full
