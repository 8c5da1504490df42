"""The calls in which a thread is, so that a hook acts in the outermost one only."""

from __future__ import annotations

import contextlib
import threading
from typing import Iterator


class Calls:
    """The calls that each thread has begun and not ended."""

    def __init__(self) -> None:
        self._inside = threading.local()

    def enter(self, what: str) -> bool:
        """Begin a call that may call itself through a wrapper. Return True for the outermost one in this thread."""
        depth = getattr(self._inside, what, 0)
        setattr(self._inside, what, depth + 1)
        return not depth

    def leave(self, what: str) -> None:
        """End a call that enter() began."""
        setattr(self._inside, what, getattr(self._inside, what) - 1)

    @contextlib.contextmanager
    def inside(self, what: str) -> Iterator[bool]:
        """Do so for a block. Yield True for the outermost one."""
        outermost = self.enter(what)
        try:
            yield outermost
        finally:
            self.leave(what)

    def is_inside(self, *whats: str) -> bool:
        """Return True in a call that enter() began in this thread."""
        return any(getattr(self._inside, what, 0) for what in whats)
