"""A progress bar on a terminal."""

from __future__ import annotations

import os
import time
from typing import TextIO

from ..report.language import ENGLISH, Language

_WIDTH = 30
_WAIT_S = 0.5  # a shorter run needs no bar
_STEP_S = 0.1


class Progress:
    """The share of a run that is done. It draws nothing unless the stream is a terminal that can rewrite a line.

    Args:
        stream: where to draw, usually standard error.
        translate: the language.
        quiet: True to draw nothing.
    """

    def __init__(self, stream: TextIO, translate: Language = ENGLISH, quiet: bool = False) -> None:
        self._stream = stream
        self._language = translate
        self._shown = False
        self._active = not quiet and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._next_s = time.monotonic() + _WAIT_S

    def show(self, done: int, total: int) -> None:
        """Draw the bar again, unless it was drawn a moment ago."""
        if self._active and done < total and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _STEP_S
            filled = _WIDTH * done // total
            bar = "#" * filled + "." * (_WIDTH - filled)
            self._stream.write(f"\r[{bar}] " + self._language("{0} of {1} files").format(done, total))
            self._stream.flush()
            self._shown = True

    def close(self) -> None:
        """Remove the bar."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
