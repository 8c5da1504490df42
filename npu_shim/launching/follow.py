"""Show the growth of a log file on the terminal."""

from __future__ import annotations

import os
from typing import BinaryIO


class Follower:
    """Copies the bytes that are appended to a file.

    Args:
        path: of the file.
        begin: number of bytes to skip.
        stream: the destination.
    """

    def __init__(self, path: str, begin: int, stream: BinaryIO) -> None:
        self._path = path
        self._position = begin
        self._stream = stream

    def copy(self) -> None:
        """Copy the new bytes."""
        with open(self._path, "rb") as log:
            log.seek(self._position)
            new = log.read()
        if new:
            self._position += len(new)
            try:
                self._stream.write(new)
                self._stream.flush()
            except BrokenPipeError:  # the reader has closed the pipe; training continues, and the log is complete
                self._stream = open(os.devnull, "wb")
