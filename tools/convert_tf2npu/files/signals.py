"""Signals that end a run, blocked where an exception in the middle of a change would do harm."""

from __future__ import annotations

import contextlib
import signal
from typing import Iterator

# Ctrl-C, a request to end, and a closed terminal. Not every system has the last one.
ENDING: list[signal.Signals] = [signal.SIGINT, signal.SIGTERM] + [
    getattr(signal, name) for name in ("SIGHUP",) if hasattr(signal, name)
]


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """Block these signals until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_parent() -> None:
    """In a worker process: ignore Ctrl-C, which the parent handles, and end at once on the other signals."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDING[1:]:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
