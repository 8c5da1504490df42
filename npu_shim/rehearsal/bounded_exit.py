"""Bound the time in which the process of a stopped script ends.

A script that is stopped after some steps may leave threads and processes that wait for work, as readers of its data.
Python waits for them at its end. In its own time the script would have ended them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time

_SECONDS = 10.0  # an exit that closes sessions takes less


def bound_exit() -> None:
    """End this process in some seconds, with the processes that it has started, if it has not ended by itself."""
    threading.Thread(target=_end, daemon=True).start()


def _end() -> None:
    time.sleep(_SECONDS)
    text = (
        f"npu-shim: threads or processes of the script still run {_SECONDS:.0f} s after its last step. They are ended."
    )
    print(text, file=sys.stderr)
    for child in multiprocessing.active_children():
        child.kill()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
