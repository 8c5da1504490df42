"""Tell the code of a script from that of libraries: TensorFlow, npu_shim, Python and installed packages."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType
from typing import Iterator

from npu_shim._tf_session import TENSORFLOW_FOLDER

# TensorFlow and npu_shim. Installed packages are not among them, because a script may be started from one.
LIBRARIES = (TENSORFLOW_FOLDER, os.path.join(os.path.dirname(os.path.abspath(__file__)), ""))
_INSTALLED = tuple(
    {os.path.join(os.path.realpath(sysconfig.get_path(name)), "") for name in ("stdlib", "purelib", "platlib")}
)


def is_library(path: str) -> bool:
    """Return True for a file of TensorFlow, npu_shim, Python or an installed package, and for code without a file."""
    return path.startswith("<") or os.path.abspath(path).startswith(LIBRARIES) or _is_installed(path)


def running() -> Iterator[FrameType]:
    """Yield the frames of the script that are running, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _is_installed(path: str) -> bool:
    return os.path.realpath(path).startswith(_INSTALLED)
