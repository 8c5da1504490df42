"""A progress bar, for a person at a terminal and for nobody else."""

from __future__ import annotations

import os
import time
from typing import TextIO

_WIDTH = 30
_WAIT_S = 0.5  # what is done by then needs no bar
_STEP_S = 0.1


class Progress:
    """How much of a run is done; silent where the stream is no terminal, or one that cannot take a line back.

    Args:
        total: the number of files.
        stream: where the bar is drawn, standard error as a rule.
    """

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._done = 0
        self._shown = False
        self._active = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._next_s = time.monotonic() + _WAIT_S

    def step(self) -> None:
        """One more file is done."""
        self._done += 1
        if self._active and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _STEP_S
            filled = _WIDTH * self._done // self._total
            self._stream.write(
                "\r[%s%s] %d of %d files" % ("#" * filled, "." * (_WIDTH - filled), self._done, self._total)
            )
            self._stream.flush()
            self._shown = True

    def close(self) -> None:
        """Take the bar away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
