"""Show the growth of log files on the terminal."""

from __future__ import annotations

import os
from typing import BinaryIO

FIRST, ALL = "first", "all"  # the ranks whose output is shown


class Follower:
    """Copies the bytes that are appended to a file.

    Args:
        path: of the file.
        begin: number of bytes to skip.
        stream: the destination.
        prefix: begins each line; lines are then copied whole. An empty one copies bytes as they come.
    """

    def __init__(self, path: str, begin: int, stream: BinaryIO, prefix: str = "") -> None:
        self._path = path
        self._position = begin
        self._stream = stream
        self._prefix = prefix.encode()
        self._part = b""  # of a line that has not ended

    def copy(self) -> None:
        """Copy the new bytes."""
        with open(self._path, "rb") as log:
            log.seek(self._position)
            new = log.read()
        self._position += len(new)
        if self._prefix and new:
            *lines, self._part = (self._part + new).split(b"\n")
            new = b"".join(self._prefix + _last_form_of_line(line) + b"\n" for line in lines)
        self._write(new)

    def finish(self) -> None:
        """Copy the new bytes, and what is left of a line that has not ended."""
        self.copy()
        last, self._part = self._part, b""
        if last:
            self._write(self._prefix + _last_form_of_line(last) + b"\n")

    def _write(self, new: bytes) -> None:
        if not new:
            return
        try:
            self._stream.write(new)
            self._stream.flush()
        except BrokenPipeError:  # the reader has closed the pipe; training continues, and the log is complete
            self._stream = open(os.devnull, "wb")


def line_prefix_of_rank(rank: int) -> str:
    """Return the beginning of each line of a rank where the output of all is shown."""
    return f"[rank {rank}] "


def _last_form_of_line(line: bytes) -> bytes:
    """Return the last form of a line: a bar that draws itself again begins after a carriage return."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]
