"""Show the progress of a recorded run: another process reads the recording while it grows."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from typing import Callable, Iterator, Sequence

from npu_shim.launching.progress.display import DRAW_INTERVAL_S, Display
from npu_shim.launching.progress.status import Status, encode, send
from npu_shim.rehearsal.comparing.read_recording import Shape
from npu_shim.rehearsal.recording.digest import digest_length, scalar_from_digest
from npu_shim.rehearsal.recording.events import Rows
from npu_shim.rehearsal.recording.kinds import LOSS
from npu_shim.rehearsal.recording.losses import FIRST
from npu_shim.rehearsal.recording.writer import FILE


@contextlib.contextmanager
def showing_progress(
    command: str | None, name: str, folders: Sequence[str], steps: int | None
) -> Iterator[Callable[[int], None]]:
    """Show a run until the end of the block. The script and its recording are as without it.

    Args:
        command: begins each line that is printed to a pipe; None to show nothing.
        name: of the run.
        folders: those of its recordings, one for each rank.
        steps: the number of steps after which it ends; None for an unknown one.
    Yields:
        a function that takes the exit code of the run.
    """
    if command is None:
        yield lambda code: None
        return
    display = Display(command)
    runs = [
        RecordedRun(name, number if len(folders) > 1 else None, folder, steps) for number, folder in enumerate(folders)
    ]
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(DRAW_INTERVAL_S):
            for run in runs:
                send(display.pipe, encode(run.status()))

    def end(code: int) -> None:
        ended.set()
        thread.join()
        for run in runs:
            send(display.pipe, encode(run.status(code)))

    thread = threading.Thread(target=report, name="npu_shim progress", daemon=True)
    thread.start()
    try:
        yield end
    finally:
        ended.set()
        thread.join()
        display.end()


class RecordedRun:
    """A run whose recording is read while it grows.

    Args:
        name: of the run.
        rank: that of its process; None for a run of one process.
        folder: of the recording.
        steps: the number of steps after which it ends, or None.
    """

    def __init__(self, name: str, rank: int | None, folder: str, steps: int | None) -> None:
        self._name = name if rank is None else f"{name}, rank {rank}"
        self._rank, self._steps = rank or 0, steps
        self._path = os.path.join(folder, FILE)
        self._begin = self._last_time = time.monotonic()
        self._place, self._left = 0, b""  # what is read of the file, and the begin of its next line
        self._losses: dict[int, int] = {}  # table -> place of the loss in its values
        self._first: tuple[int, float] | None = None  # step and second
        self._last = (0, 0.0)
        self._loss: float | None = None

    def status(self, code: int | None = None) -> Status:
        """Return the status, after what is new in the recording."""
        self._read_new_events()
        now, step = time.monotonic(), self._last[0]
        rate = left = None
        if self._first is not None and step > self._first[0]:
            rate = (step - self._first[0]) / max(self._last[1] - self._first[1], 1e-6)
            if self._steps is not None and code is None:
                left = max((self._steps - step) / rate - (now - self._last_time), 0.0)
        return Status(
            rank=self._rank,
            name=self._name,
            step=step or None,
            seconds=now - self._begin,
            rate=rate,
            loss=self._loss,
            left_s=left,
            idle_s=now - self._last_time if step else 0.0,
            code=code,
        )

    def _read_new_events(self) -> None:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._place)
                new = file.read()
        except OSError:  # the process has not begun
            return
        self._place += len(new)
        *lines, self._left = (self._left + new).split(b"\n")
        last: Rows | None = None
        for line in lines:
            event = json.loads(line)
            kind = event.pop("event")
            if kind == "table":
                self._note_loss(event["table"], event["rows"])
            elif kind == "rows":
                rows = Rows(**event)
                last = rows if rows.table in self._losses else last
                if rows.step > self._last[0]:
                    self._last = rows.step, rows.seconds
                    self._first = self._first or self._last
                    self._last_time = time.monotonic()
        if last is not None:
            self._loss = scalar_from_digest(last.decode_digests()[self._losses[last.table] :])

    def _note_loss(self, table: int, rows: list[Shape]) -> None:
        place = 0
        for kind, name, _, shape in rows:
            if (kind, name, shape) == (LOSS, FIRST, []):
                self._losses[table] = place
            place += digest_length(tuple(shape))
