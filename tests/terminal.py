"""A terminal for tests: a pseudo-terminal with a program, and the screen that its output makes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from typing import Callable, Mapping, Sequence

_SEQUENCE = re.compile(r"\x1b(?:\[([0-9;?]*)([A-Za-z])|([78D]))|([\r\n\b])|([^\x1b\r\n\b]+)|(\x1b[^\[78D]?)")


class Screen:
    """The characters of a terminal; the sequences that ``npu_shim.launching.progress.region`` writes are known.

    Args:
        rows, columns: its size.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.lines = [""] * rows
        self.scrolled: list[str] = []  # lines that left at the top
        self.row = self.column = 0
        self.bottom = rows - 1  # of the region that scrolls
        self._saved = (0, 0)

    def write(self, text: str) -> None:
        """Draw output."""
        for found in _SEQUENCE.finditer(text):
            arguments, final, short, control, plain, unknown = found.groups()
            assert unknown is None, f"unknown sequence {unknown!r}"
            if final:
                self._sequence([int(each) for each in arguments.split(";") if each.isdigit()], final)
            elif short == "7":
                self._saved = self.row, self.column
            elif short == "8":
                self.row, self.column = self._saved
            elif short == "D" or control == "\n":
                self._down()
            elif control == "\r":
                self.column = 0
            elif control == "\b":
                self.column = max(0, self.column - 1)
            else:
                for character in plain or "":
                    self._put(character)

    def _put(self, character: str) -> None:
        if self.column >= self.columns:
            self.column = 0
            self._down()
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
        self.column += 1

    def _down(self) -> None:
        if self.row == self.bottom:
            self.scrolled.append(self.lines.pop(0))
            self.lines.insert(self.bottom, "")
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def _sequence(self, numbers: list[int], final: str) -> None:
        if final == "A":
            self.row = max(0, self.row - (numbers or [1])[0])
        elif final == "H":
            self.row, self.column = (numbers or [1])[0] - 1, (numbers + [1, 1])[1] - 1
        elif final == "r":
            self.bottom = numbers[1] - 1 if numbers else self.rows - 1
            self.row = self.column = 0
        elif final == "J":
            self.lines[self.row :] = [self.lines[self.row][: self.column]] + [""] * (self.rows - self.row - 1)
        elif final == "K":
            assert numbers == [2]
            self.lines[self.row] = ""
        else:
            raise AssertionError(f"unknown sequence {final!r}")


class Terminal:
    """A program in a pseudo-terminal.

    Args:
        command: program and arguments.
        rows, columns: size of the terminal.
        environment: its variables.
        directory: its current folder.
    """

    def __init__(
        self, command: Sequence[str], rows: int, columns: int, environment: Mapping[str, str], directory: str
    ) -> None:
        self.screen = Screen(rows, columns)
        self._own, other = pty.openpty()
        self.resize(rows, columns)
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env={**environment, "TERM": "xterm"},
            cwd=directory,
            start_new_session=True,
        )
        os.close(other)
        self.raw = ""

    def resize(self, rows: int, columns: int) -> None:
        """Change the size that programs see."""
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, timeout_s: float = 0.1) -> bool:
        """Draw what the program has written. Return False when all programs have closed the terminal."""
        if not select.select([self._own], [], [], timeout_s)[0]:
            return True
        try:
            new = os.read(self._own, 1 << 16).decode("utf-8", "replace")
        except OSError:  # EIO: nobody has it open
            return False
        self.raw += new
        self.screen.write(new)
        return bool(new)

    def read_until(self, condition: Callable[[Screen], object], timeout_s: float = 60.0) -> None:
        """Draw output until the screen meets a condition."""
        end = time.monotonic() + timeout_s
        while not condition(self.screen):
            assert self.read() and time.monotonic() < end, "\n".join(self.screen.lines)

    def end(self) -> int:
        """Draw all output, and return the exit code."""
        while self.read():
            pass
        os.close(self._own)
        return self.process.wait(60)
