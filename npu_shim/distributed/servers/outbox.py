"""The letters on their way to one rank: a thread of their own sends them in their order."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from typing import Any, Callable

from npu_shim.distributed.servers.letters import INLINE_BYTES, Letter, pack

_MOST_TOGETHER = 64


class Outbox:
    """The letters from this rank to another one.

    Args:
        put: sends a message; raises where the other rank does not answer.
        failed: called with such an error and the number of tries, on the thread of the outbox; returns True to send
            again. Otherwise every waiting letter is dropped.
    """

    def __init__(self, put: Callable[[Any, Any], None], failed: Callable[[Exception, int], bool]) -> None:
        self._put, self._failed = put, failed
        self._waiting: deque[Letter] = deque()
        self._changed = threading.Condition()
        self._posted = self._sent = 0
        self._thread: threading.Thread | None = None

    def post(self, letter: Letter) -> int:
        """Sends a letter some time; its body must not change until sent() of the number that is returned is true."""
        with self._changed:
            self._waiting.append(letter)
            self._posted += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="npu_shim outbox", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._posted

    def sent(self, number: int, timeout_s: float) -> bool:
        """Return True if a letter has been sent or dropped; wait at most so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._sent >= number, timeout_s)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                letters = self._some()
            dropped = not self._delivered(letters)
            with self._changed:
                if dropped:
                    self._sent += len(self._waiting)
                    self._waiting.clear()
                self._sent += len(letters)
                self._changed.notify_all()

    def _delivered(self, letters: list[Letter]) -> bool:
        message = pack(letters)
        for tries in itertools.count(1):
            try:
                self._put(*message)
                return True
            except Exception as error:  # of TensorFlow, and there are many kinds
                if not self._failed(error, tries):
                    break
        return False

    def _some(self) -> list[Letter]:
        """The next letters; a large one ends a message."""
        letters: list[Letter] = []
        while self._waiting and len(letters) < _MOST_TOGETHER:
            letters.append(self._waiting.popleft())
            if len(letters[-1].body) > INLINE_BYTES:
                break
        return letters
