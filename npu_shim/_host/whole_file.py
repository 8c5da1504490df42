"""Write a whole file or nothing."""

from __future__ import annotations

import os


def write(text: str, path: str) -> None:
    """Write a text to a file. An interruption leaves the file as it was.

    Raises:
        OSError: the file cannot be written.
    """
    part = f"{path}.part"
    try:
        with open(part, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)
        raise
