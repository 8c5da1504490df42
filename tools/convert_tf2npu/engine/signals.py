"""Signals that end a run, held back where an exception in the midst of things would do harm."""

from __future__ import annotations

import contextlib
import signal
from typing import Iterator

# Of a person at the terminal, of who ends the process, of a terminal that is closed; the last is not known everywhere.
ENDING: list[signal.Signals] = [signal.SIGINT, signal.SIGTERM] + [
    getattr(signal, name) for name in ("SIGHUP",) if hasattr(signal, name)
]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Until the end of the block, no such signal is acted on."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def act_on_held_back() -> None:
    """Act now, and only now, on a signal that was held back."""
    if hasattr(signal, "pthread_sigmask"):
        before = signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_to_parent() -> None:
    """In a process that another one has started and ends: do nothing on Ctrl-C, and end at once on other signals."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDING[1:]:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
