"""Waits for a rank table that a cloud platform is still writing.

Such a platform starts the job's containers first, with a file that says
``{"status": "initializing"}``, and fills it in when it knows all devices.
"""

from __future__ import annotations

import json
import time
from typing import Callable

from npu_shim.distributed.ranktable import model as ranktable
from npu_shim.distributed.ranktable.model import INITIALIZING, RankTable, RankTableError

WAIT_SECONDS = 600.0
_SECONDS_BETWEEN = 0.5


class NotCompleted(Exception):
    """The rank table was not ready in time."""


def completed_table(
    path: str, timeout: float, say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> RankTable:
    """Reads a rank table when it is ready.

    Args:
        path: of the file.
        timeout: seconds to wait while its status is ``initializing``; 0 to look once.
        say: takes a line for the user, when there is something to wait for.
        sleep: waits so many seconds.
    Raises:
        NotCompleted: it was not ready in time.
        OSError: the file cannot be read.
        RankTableError: it holds no rank table that can be used.
    """
    deadline = time.monotonic() + timeout
    waited = False
    while True:
        try:
            if not _in_the_making(path):
                return ranktable.read(path)
            wrong = f"its status is still {INITIALIZING!r}"
        except (OSError, RankTableError) as error:
            if not waited:
                raise
            wrong = str(error)  # caught while it is being replaced
        if time.monotonic() >= deadline:
            raise NotCompleted(
                f"{path} was not completed within {timeout:g} s (--table-timeout): {wrong}. Look whether "
                "all devices of the job are free, and whether whoever writes the table still runs."
            )
        if not waited:
            say(f"{path} is {INITIALIZING!r}; waiting for it to be completed, at most {timeout:g} s")
        waited = True
        sleep(min(_SECONDS_BETWEEN, max(0.0, deadline - time.monotonic())))


def _in_the_making(path: str) -> bool:
    """Whether a file says so of itself, which is all that it has to say by then."""
    try:
        data = json.loads(ranktable.text_of(path))
    except ValueError as error:
        if isinstance(error, RankTableError):
            raise
        return False  # no JSON: the reader says where and why
    return isinstance(data, dict) and data.get("status") == INITIALIZING
