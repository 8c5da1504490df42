"""Collectives that run on threads of their own while TensorFlow's threads do other work.

A graph may have more collectives than its session has threads, and the ranks may
reach them in another order. If each held a thread until the other ranks arrive, the
collective that one of them waits for might never start.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import Callable, Iterator, List

import numpy as np

Work = Callable[[], List[np.ndarray]]
ROUND_S = 0.02  # in which every collective that is not done is asked once
SHORTEST_WAIT_S = 0.0002

_lock = threading.Lock()
_pending: dict[int, _Pending] = {}
_tickets: Iterator[int] = itertools.count(1)
_idle: list[_Worker] = []


class _Pending:
    """A collective that runs on another thread."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._done = threading.Event()
        self._results: list[np.ndarray] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the collective."""
        try:
            self._results = self._work()
        except BaseException as error:  # raised where the collective is asked for
            self._error = error
        self._done.set()

    def wait(self, seconds: float) -> bool:
        """Return True if the collective is done within some time."""
        return self._done.wait(seconds)

    def results(self) -> list[np.ndarray]:
        """Return what a collective that is done came to, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._results


class _Worker:
    """A thread that runs one collective after another; it does not keep the process alive."""

    def __init__(self) -> None:
        self._given: _Pending | None = None
        self._ready = threading.Semaphore(0)
        threading.Thread(target=self._loop, daemon=True, name="npu_shim collective").start()

    def give(self, pending: _Pending) -> None:
        """Let the thread, which is idle, run a collective."""
        self._given = pending
        self._ready.release()

    def _loop(self) -> None:
        while True:
            self._ready.acquire()
            given, self._given = self._given, None
            assert given is not None
            given.run()
            with _lock:
                _idle.append(self)


def start(work: Work) -> int:
    """Start a collective; return its ticket, which is positive."""
    pending = _Pending(work)
    with _lock:
        ticket = next(_tickets)
        _pending[ticket] = pending
        worker = _idle.pop() if _idle else None
    (worker or _Worker()).give(pending)
    return ticket


def ask(ticket: int) -> list[np.ndarray] | None:
    """Return the results of a collective, or None if it is not done after a short wait.

    The wait is the shorter the more collectives are under way, so that a session with one thread comes to each of them,
    and to its other ops, in time.

    Raises:
        Exception: that of the collective.
    """
    pending = _pending[ticket]
    if not pending.wait(max(ROUND_S / len(_pending), SHORTEST_WAIT_S)):
        return None
    with _lock:
        del _pending[ticket]
    return pending.results()


def _forget() -> None:
    """Forget the threads of the process that was forked; the child has none of them."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()
    _pending.clear()


os.register_at_fork(after_in_child=_forget)
