"""Shows on the terminal what a log file grows by."""

from __future__ import annotations

import os
from typing import BinaryIO


class Follower:
    """Copies what is appended to a file.

    Args:
        path: of the file.
        begin: bytes of it that are not copied.
        stream: where to.
    """

    def __init__(self, path: str, begin: int, stream: BinaryIO) -> None:
        self._path = path
        self._at = begin
        self._stream = stream

    def copy(self) -> None:
        """Copies what is new."""
        with open(self._path, "rb") as log:
            log.seek(self._at)
            new = log.read()
        if new:
            self._at += len(new)
            try:
                self._stream.write(new)
                self._stream.flush()
            except BrokenPipeError:  # nobody reads any more, and training goes on: the log has it all
                self._stream = open(os.devnull, "wb")
