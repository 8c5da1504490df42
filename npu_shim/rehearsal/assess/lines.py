"""Lines of the script: those that run a graph, and those that create an operation."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

from npu_shim import _tf_session

if TYPE_CHECKING:
    from npu_shim._types import Operation

_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(
    {_tf_session.TENSORFLOW_FOLDER, _OWN, _PATHS["stdlib"] + os.sep, _PATHS["purelib"] + os.sep, "<"}
)  # "<": code without a file
_MOST = 3  # frames of an operation


def is_library(path: str) -> bool:
    """Return True for a file of Python, of an installed package, of TensorFlow or of npu_shim."""
    return path.startswith("<") or os.path.abspath(path).startswith(_LIBRARIES)


def line_of_caller(folder: str) -> str:
    """Return the innermost line of the script that is running, relative to a folder; "an unknown line" without one."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return f"{relative(frame.f_code.co_filename, folder)}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


def lines_of(op: Operation, folder: str) -> list[str]:
    """Return the lines of the script that create an operation, the innermost first."""
    found: list[str] = []
    for frame in reversed(list(op.traceback or ())):
        text = f"{relative(frame[0], folder)}:{frame[1]}"
        if not is_library(frame[0]) and text not in found:
            found.append(text)
    return found[:_MOST]


def relative(path: str, folder: str) -> str:
    """Return a path relative to a folder if it is below."""
    full = os.path.abspath(path)
    return os.path.relpath(full, folder) if full.startswith(folder + os.sep) else full
