"""Lines at the bottom of a terminal, below a region in which all other output scrolls.

The terminal itself keeps the two apart (DECSTBM, as terminals since the VT100 have), so the output of the script goes
directly to it: unfinished lines, carriage returns and colors work as without the lines.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from typing import Sequence

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_MIN_ROWS, _MIN_COLUMNS = 4, 20


class Region:
    """The lines of a terminal.

    Args:
        terminal: a file descriptor of the terminal.
    """

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._rows = self._count = 0  # of the terminal, and of the lines; 0 without a region

    def size(self) -> tuple[int, int] | None:
        """Return rows and columns of the terminal; None if it is too small for lines, or gone."""
        try:
            rows, columns = struct.unpack("hhhh", fcntl.ioctl(self._terminal, termios.TIOCGWINSZ, b"\0" * 8))[:2]
        except OSError:
            return None
        return (rows, columns) if rows >= _MIN_ROWS and columns >= _MIN_COLUMNS else None

    def draw(self, lines: Sequence[str]) -> None:
        """Draw the lines; the cursor stays where it is."""
        size = self.size()
        if size is None or not lines:
            self.release()
            return
        text = ""
        if (size[0], len(lines)) != (self._rows, self._count):
            text = self._release_sequence() + self._reserve_sequence(size[0], len(lines))
        top = self._rows - self._count
        rows = "".join(f"\x1b[{top + number + 1};1H\x1b[2K{line}" for number, line in enumerate(lines))
        self._write(text + _SAVE + rows + _RESTORE)

    def release(self) -> None:
        """Remove the lines, and give the terminal all its rows back."""
        self._write(self._release_sequence())

    def _reserve_sequence(self, rows: int, count: int) -> str:
        """Return the sequences that scroll the last rows free, without a change of the cursor's column."""
        self._rows, self._count = rows, count
        return "\x1bD" * count + f"\x1b[{count}A" + _SAVE + f"\x1b[1;{rows - count}r" + _RESTORE

    def _release_sequence(self) -> str:
        if not self._count:
            return ""
        top, self._count = self._rows - self._count + 1, 0
        return f"{_SAVE}\x1b[r\x1b[{top};1H\x1b[J{_RESTORE}"

    def _write(self, text: str) -> None:
        try:
            os.write(self._terminal, text.encode("utf-8", "replace"))
        except OSError:  # the terminal is gone; the script goes on
            self._count = 0
