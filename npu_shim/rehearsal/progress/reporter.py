"""Report the progress of this process: twice a second to the display, once a second to the event file."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Callable

from npu_shim.launching.progress.status import Status, encode, send
from npu_shim.rehearsal.progress.progress import Progress
from npu_shim.rehearsal.progress.waits import Waits

_INTERVAL_S, _WINDOW_S, _IDLE_S = 0.5, 5.0, 2.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Reporter:
    """A thread that reports until the process ends.

    Args:
        rank: of this process.
        progress, waits: of this process.
        pipe: file descriptor to which the status goes; None without a display.
        write: called with tag, value and step; None without event files.
    """

    def __init__(
        self,
        rank: int,
        progress: Progress,
        waits: Waits,
        pipe: int | None,
        write: Callable[[str, float, int], None] | None,
    ) -> None:
        self.place: Callable[[], str] = str  # returns the line of the script that this process is at, once it is known
        self._rank, self._pid = rank, os.getpid()
        self._progress, self._waits, self._pipe, self._write = progress, waits, pipe, write
        self._begin = time.monotonic()
        self._seen: deque[tuple[float, int, float]] = deque([(self._begin, 0, 0.0)])  # time, steps, waited
        self._rate: float | None = None  # the last ones that were measured
        self._own_step_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report_until_end, name="npu_shim progress", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Report a last time, and end the thread. A forked child of the process reports nothing."""
        if os.getpid() == self._pid:
            self._ended.set()
            self._thread.join(_INTERVAL_S * 4)

    def _report_until_end(self) -> None:
        is_even = True
        while True:
            last = self._ended.wait(_INTERVAL_S)
            status = self.status()
            if self._pipe is not None:
                send(self._pipe, encode(status))
            is_even = not is_even
            if self._write is not None and status.step is not None and (is_even or last):
                self._write("global_step", status.step, status.step)
                if status.rate is not None:
                    self._write("steps_per_second", status.rate, status.step)
                if status.memory_bytes is not None:
                    self._write("memory/resident_bytes", status.memory_bytes, status.step)
            if last:
                return

    def status(self) -> Status:
        """Return what this process does now."""
        now, progress = time.monotonic(), self._progress
        steps, waited = progress.steps, self._waits.seconds_waited()
        self._seen.append((now, steps, waited))
        while len(self._seen) > 2 and (now - self._seen[1][0] >= _WINDOW_S or not self._seen[0][1]):
            self._seen.popleft()  # the time before the first step is not that of steps
        then, before, waited_before = self._seen[0]
        new_steps, elapsed = (steps - before, now - then) if before else (0, 0.0)
        if new_steps > 0:
            self._rate, self._own_step_s = new_steps / elapsed, max(elapsed - (waited - waited_before), 0.0) / new_steps
        elif self._rate is None and progress.first_step is not None:  # a short run
            elapsed = progress.last_step - progress.first_step[0]
            self._rate = (steps - progress.first_step[1]) / elapsed if elapsed and steps else None
        idle = now - (progress.last_step if steps else self._begin)
        return Status(
            rank=self._rank,
            step=steps or None,
            seconds=now - self._begin,
            rate=self._rate or None,
            own_step_s=self._own_step_s,
            loss=progress.loss,
            memory_bytes=_resident_bytes(),
            idle_s=idle,
            place=self.place() if idle > _IDLE_S else "",
            collective=self._waits.running_collective() if idle > _IDLE_S else "",
        )


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES
