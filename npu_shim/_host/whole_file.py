"""Read and write whole files."""

from __future__ import annotations

import os


def write_atomically(content: str | bytes, path: str) -> None:
    """Write a text or bytes to a file. An interruption leaves the file as it was.

    Raises:
        OSError: the file cannot be written.
    """
    part = f"{path}.part"
    try:
        with open(part, "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        os.replace(part, path)
    except BaseException:  # an interruption, too
        if os.path.exists(part):
            os.unlink(part)
        raise


def read_if_readable(path: str) -> bytes | None:
    """Return the bytes of a file; None if it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None
