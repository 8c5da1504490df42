"""Wait for a rank table that a cloud platform is still writing.

The platform starts the containers of a job first, with a file that contains
``{"status": "initializing"}``, and completes it when it knows all devices.
"""

from __future__ import annotations

import json
import time
from typing import Callable

from npu_shim.distributed.ranktable.model import INITIALIZING, RankTable, RankTableError
from npu_shim.distributed.ranktable.reader import read_table, read_table_text

TABLE_TIMEOUT_S = 600.0
_POLL_INTERVAL_S = 0.5


class TableTimeout(Exception):
    """The rank table was not complete in time."""


def wait_for_table(
    path: str, timeout_s: float, report: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> RankTable:
    """Read a rank table when it is complete.

    Args:
        path: of the file.
        timeout_s: how long to wait while its status is ``initializing``; 0 to read it once.
        report: prints a line for the user if there is a wait.
        sleep: sleeps for some seconds.
    Raises:
        TableTimeout: the table was not complete in time.
        OSError: the file cannot be read.
        RankTableError: it has no valid rank table.
    """
    deadline = time.monotonic() + timeout_s
    waited = False
    while True:
        try:
            if not _is_initializing(path):
                return read_table(path)
            reason = f"its status is still {INITIALIZING!r}"
        except (OSError, RankTableError) as error:
            if not waited:
                raise
            reason = str(error)  # the platform may be replacing the file
        if time.monotonic() >= deadline:
            raise TableTimeout(
                f"{path} was not complete within {timeout_s:g} s (--table-timeout): {reason}. Check that all devices "
                "of the job are free, and that the platform still writes the table."
            )
        if not waited:
            report(f"{path} is {INITIALIZING!r}; waiting until it is complete, at most {timeout_s:g} s")
        waited = True
        sleep(min(_POLL_INTERVAL_S, max(0.0, deadline - time.monotonic())))


def _is_initializing(path: str) -> bool:
    """Return True if the status of a file is ``initializing``; its other keys may be missing then."""
    try:
        data = json.loads(read_table_text(path))
    except ValueError as error:
        if isinstance(error, RankTableError):
            raise
        return False  # not JSON: the reader reports the position
    return isinstance(data, dict) and data.get("status") == INITIALIZING
