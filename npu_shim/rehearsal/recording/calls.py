"""The calls in which a thread is, so that a hook acts in the outermost one only."""

from __future__ import annotations

import collections
import contextlib
import threading
from typing import Iterator


class Calls:
    """The calls that each thread has begun and not ended."""

    def __init__(self) -> None:
        self._inside = threading.local()
        self._in_any_thread: collections.Counter[str] = collections.Counter()
        self._counting = threading.Lock()

    def enter(self, call: str) -> bool:
        """Begin a call that may call itself through a wrapper. Return True for the outermost one in this thread."""
        depth = getattr(self._inside, call, 0)
        setattr(self._inside, call, depth + 1)
        with self._counting:
            self._in_any_thread[call] += 1
        return not depth

    def leave(self, call: str) -> None:
        """End a call that enter() began."""
        setattr(self._inside, call, getattr(self._inside, call) - 1)
        with self._counting:
            self._in_any_thread[call] -= 1

    @contextlib.contextmanager
    def inside(self, call: str) -> Iterator[bool]:
        """Do so for a block. Yield True for the outermost one."""
        outermost = self.enter(call)
        try:
            yield outermost
        finally:
            self.leave(call)

    def is_inside(self, *calls: str) -> bool:
        """Return True in a call that enter() began in this thread."""
        return any(getattr(self._inside, what, 0) for what in calls)

    def is_any_thread_inside(self, *calls: str) -> bool:
        """Return True while any thread is in one of the calls: strategies run the replicas of a call in threads."""
        return any(self._in_any_thread[call] for call in calls)
