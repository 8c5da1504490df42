"""Versions of installed packages, read from their metadata."""

from __future__ import annotations

import platform
import sys

import npu_shim


def versions() -> dict[str, str]:
    """Return versions and paths of npu_shim, Python and the system."""
    return {
        "npu_shim": npu_shim.__version__,
        "npu_shim_path": npu_shim.__path__[0],
        "python": platform.python_version(),
        "python_path": sys.executable,
        "system": platform.platform(),
        "machine": platform.machine(),
    }
