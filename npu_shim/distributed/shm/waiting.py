"""Waiting for another process: short turns first, as most waits are short, then short sleeps."""

from __future__ import annotations

import os
import select
import time
from typing import Callable

CHECK_EVERY_S = 0.05
_FIRST_SLEEP_S, _LONGEST_SLEEP_S = 2e-5, 1e-3
_YIELDS_PER_SLEEP = 4


def wait_until(ready: Callable[[], bool], check: Callable[[float], None], turns: int) -> None:
    """Returns when ``ready()`` is true.

    Ranks may outnumber the cores, and other threads of this process may wait for
    the interpreter: each turn offers the core to others, and every fourth also
    lets go of the interpreter, which sched_yield does not do. (time.sleep(0) would
    do both, but sleeps for the kernel's timer slack of 50 microseconds in Python 3.11.)

    Args:
        ready: asked again and again, so it is cheap.
        check: called about every 50 ms with the seconds waited; it raises to end the wait.
        turns: how many times to ask before the first sleep.
    """
    for turn in range(turns):
        if ready():
            return
        if turn % _YIELDS_PER_SLEEP:
            os.sched_yield()
        else:
            select.select((), (), (), 0)
    began = time.monotonic()
    next_check = began + CHECK_EVERY_S
    pause = _FIRST_SLEEP_S
    while not ready():
        now = time.monotonic()
        if now >= next_check:
            check(now - began)
            next_check = now + CHECK_EVERY_S
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_SLEEP_S)
