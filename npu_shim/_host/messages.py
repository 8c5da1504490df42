"""Messages of npu_shim beside the output of a script."""

from __future__ import annotations

import errno
import os
import sys


def report(text: str) -> None:
    """Write a message to standard error."""
    print(f"npu_shim: {text}", file=sys.stderr, flush=True)


def system_error_text(error: OSError) -> str:
    """Return what an error of the system says, as in ``file not found: train.py``, without a full stop."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return reason
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else str(error.filename)
    if error.errno == errno.ENOENT:
        return f"file not found: {name}"
    if error.errno == errno.EISDIR:
        return f"{name} is a folder"
    return f"{name}: {reason}"
