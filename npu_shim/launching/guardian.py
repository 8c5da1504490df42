"""End the remaining processes of a job when its launcher dies, whatever the cause.

The guardian is a separate process. Each rank sends it the process group that it
leads, just before its program starts; the launcher sends the groups that have
ended. When the pipe closes, the launcher is dead: the guardian terminates the
remaining groups, and kills them soon after. It runs as a plain file, so it starts
in a few milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Iterable

TERMINATE_TIMEOUT_S = 5.0


def _signal_groups(groups: Iterable[int], number: int) -> list[int]:
    """Send a signal to the groups; return the groups that still exist."""
    left: list[int] = []
    for group in groups:
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            continue
        except PermissionError:  # another user's process has the number of a dead one
            continue
        left.append(group)
    return left


def main() -> None:
    """Read ``+GROUP`` and ``-GROUP`` lines until the pipe closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    left = _signal_groups(groups, signal.SIGTERM)
    end = time.monotonic() + TERMINATE_TIMEOUT_S
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left = _signal_groups(left, 0)
    _signal_groups(left, signal.SIGKILL)


if __name__ == "__main__":
    main()
