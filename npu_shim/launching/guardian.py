"""Ends what is left of a job when its launcher dies, however it dies.

A process of its own. Each rank says here, as the last thing before its program
starts, which process group it leads; the launcher says which groups it has
seen to the end. When the pipe closes, the launcher is gone: what is left is
asked to end, and soon after made to. It runs as a plain file, so that it starts
in a few milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Iterable

ASK_SECONDS = 5.0


def _send(groups: Iterable[int], number: int) -> list[int]:
    """Signals the groups; returns those that are still there."""
    left: list[int] = []
    for group in groups:
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            continue
        except PermissionError:  # of a dead process's number that somebody else has got since
            continue
        left.append(group)
    return left


def main() -> None:
    """Reads ``+GROUP`` and ``-GROUP`` lines until the pipe closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    left = _send(groups, signal.SIGTERM)
    end = time.monotonic() + ASK_SECONDS
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left = _send(left, 0)
    _send(left, signal.SIGKILL)


if __name__ == "__main__":
    main()
