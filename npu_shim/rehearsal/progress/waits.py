"""Measure the time that this process waits in collectives."""

from __future__ import annotations

import threading
import time

from npu_shim._tensorflow.types import Function, Result
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.distributed.collectives.transport import GroupBackend
from npu_shim.rehearsal.recording import methods


class Waits:
    """The time in which at least one collective is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = 0.0
        self._since = 0.0
        self._running: dict[int, str] = {}  # the key of each collective, by the thread that runs it

    def watch_collectives(self) -> None:
        """Measure all collectives of this process on the CPU."""
        methods.wrap_methods(GroupBackend, ("run",), self.run_and_measure)

    def seconds_waited(self) -> float:
        """Return the seconds so far."""
        with self._lock:
            return self._total + (time.monotonic() - self._since if self._running else 0.0)

    def running_collective(self) -> str:
        """Return the key of a collective that is under way; empty if there is none."""
        with self._lock:
            return next(iter(self._running.values()), "")

    def run_and_measure(self, original: Function, group: ProcessGroup, key: str, *args: object) -> Result:
        """Run a collective and measure it."""
        thread = threading.get_ident()
        with self._lock:
            if not self._running:
                self._since = time.monotonic()
            self._running[thread] = key
        try:
            return original(group, key, *args)
        finally:
            with self._lock:
                del self._running[thread]
                if not self._running:
                    self._total += time.monotonic() - self._since
