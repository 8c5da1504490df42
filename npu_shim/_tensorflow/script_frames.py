"""Tell the code of a script from that of libraries: TensorFlow, npu_shim, Python and installed packages."""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
import threading
from types import CodeType, FrameType
from typing import Iterator, NamedTuple

from npu_shim._tensorflow.tf_session import TENSORFLOW_FOLDER

# TensorFlow and npu_shim. Installed packages are not among them, because a script may be started from one.
LIBRARIES = (TENSORFLOW_FOLDER, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""))
_STARTER = os.path.join(LIBRARIES[1], "import_hook", "script.py")
# sys.path has the packages of the user and, in a virtual environment with --system-site-packages, those of the system.
_FOLDERS = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")] + [
    path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")
]
_INSTALLED = tuple({os.path.join(os.path.realpath(folder), "") for folder in _FOLDERS})


@functools.lru_cache(maxsize=None)
def is_library(path: str) -> bool:
    """Return True for a file of TensorFlow, npu_shim, Python or an installed package, and for code without a file."""
    return path.startswith("<") or os.path.abspath(path).startswith(LIBRARIES) or _is_installed(path)


def is_starter_of_script(path: str) -> bool:
    """Return True for the file whose frame calls the script. The frames outside of it are those of the command."""
    return os.path.abspath(path) == _STARTER


def running_frames(thread: int | None = None) -> Iterator[FrameType]:
    """Yield the frames of the script that are running, the innermost first.

    Args:
        thread: ident of a thread; None for the calling one.
    """
    frame: FrameType | None = sys._getframe(1) if thread is None else sys._current_frames().get(thread)
    while frame is not None and not is_starter_of_script(frame.f_code.co_filename):
        if not is_library(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def running_files() -> Iterator[str]:
    """Yield the files of the functions that are running, of libraries and the script, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


class RunningCall(NamedTuple):
    """An instruction of a function that is running.

    Attributes:
        code: of the function.
        instruction: its place in the code.
    """

    code: CodeType
    instruction: int


def running_calls() -> tuple[RunningCall, ...]:
    """Return the running calls of libraries and the script, the innermost first; equal in each round of a loop."""
    calls: list[RunningCall] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_starter_of_script(frame.f_code.co_filename):
        calls.append(RunningCall(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(calls)


def is_code_running(code: CodeType) -> bool:
    """Return True if a call of this code has not returned, in the calling thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def innermost_files() -> dict[int, str]:
    """Return the file that each thread is in, by the ident of the thread."""
    return {thread: frame.f_code.co_filename for thread, frame in sys._current_frames().items()}


def is_called_by_script() -> bool:
    """Return True if the function that calls this one is called by code of the script."""
    return not is_library(sys._getframe(2).f_code.co_filename)


def is_called_directly_by_script() -> bool:
    """Return True if no code of Keras or npu_shim is between the caller and the script, but that of a recording."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not is_library(path):
            return True
        is_own = path.startswith(LIBRARIES[1]) and f"{os.sep}rehearsal{os.sep}" not in path
        if is_own or f"{os.sep}keras{os.sep}" in path.rpartition("-packages")[2]:
            return False
        frame = frame.f_back
    return False


def _caller_of_npu_shim() -> FrameType | None:
    """Return the innermost frame outside of npu_shim."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARIES[1]):
        frame = frame.f_back
    return frame


def is_in_for_statement() -> bool:
    """Return True if a ``for`` statement or a comprehension reads an iterator, whose method calls this function."""
    frame = _caller_of_npu_shim()
    return frame is not None and dis.opname[frame.f_code.co_code[frame.f_lasti]] == "FOR_ITER"


def is_called_by_library() -> bool:
    """Return True if code of TensorFlow, Python or an installed package has called npu_shim."""
    frame = _caller_of_npu_shim()
    return frame is None or is_library(frame.f_code.co_filename)


def calling_line() -> tuple[str, int]:
    """Return file and line that have called npu_shim."""
    frame = _caller_of_npu_shim()
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def main_thread_line_text() -> str:
    """Return where the main thread is in the script: ``at train.py:42 in load``; empty if no line of it runs."""
    for frame in running_frames(threading.main_thread().ident):
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if not os.path.basename(path).startswith("__autograph_generated_file"):
            return f"at {path}:{frame.f_lineno}" + (f" in {name}" if name != "<module>" else "")
    return ""


def _is_installed(path: str) -> bool:
    return os.path.realpath(path).startswith(_INSTALLED)
