"""The barrier of a group, and the data slots that it guards.

Each rank has a slot in each of two halves. The ranks write their own slot, pass
the barrier, and read the other slots; then they switch to the other half. One
barrier per half is enough: a rank that writes a half again has passed the barrier
of the other half since, so every rank has finished reading. The current half
therefore carries over from one collective to the next.
"""

from __future__ import annotations

import os
import select
import time
from typing import Callable

import numpy as np

from npu_shim.distributed.collectives.errors import PeerLost, Stalled, stopped_rank_text
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.segment import Segment, fence

_SPINS = 1000
_CHECK_INTERVAL_S = 0.05
_FIRST_SLEEP_S, _MAX_SLEEP_S = 2e-5, 1e-3
_YIELDS_PER_SLEEP = 4


class Barrier:
    """The barrier and slots of a group, used by one collective at a time.

    ``size`` is the number of ranks, ``rank`` the rank of this process in the group, ``chunk_bytes`` the size of a slot,
    and ``spins`` how long a rank waits without sleeping, see wait_until().
    """

    def __init__(self, segment: Segment, rank: int, peers: Peers, timeout_s: float, spins: int = _SPINS) -> None:
        self.size, self.rank, self.chunk_bytes = segment.layout.size, rank, segment.layout.chunk_bytes
        self.passes = 0
        self._segment, self._peers, self._timeout_s, self._spins = segment, peers, timeout_s, spins
        self._words = segment.words
        counters = segment.barrier_counter_indices()
        self._own_index = counters[rank]
        self._others = [(index, other) for other, index in enumerate(counters) if other != rank]
        self.half = 0  # the current one

    def slots(self, dtype: np.dtype, count: int) -> list[np.ndarray]:
        """Return the slots of all ranks in the current half as ``count`` elements each."""
        half, needed = self._segment.slots[self.half], count * dtype.itemsize
        return [half[rank, :needed].view(dtype) for rank in range(self.size)]

    def switch_half(self) -> None:
        """Use the other half from now on."""
        self.half ^= 1

    def wait(self) -> None:
        """Return when every rank has called it; data that they wrote before can then be read.

        Raises:
            PeerLost, Stalled: a rank does not reach the barrier.
        """
        self.passes += 1
        words, number = self._words, self.passes
        fence()
        words[self._own_index] = number
        for index, other in self._others:
            if words[index] < number:
                wait_until(
                    lambda: words[index] >= number,
                    lambda waited_s: self._raise_for_failure_or_stall(waited_s, index, other),
                    self._spins,
                )
        fence()

    def _raise_for_failure_or_stall(self, waited_s: float, index: int, other: int) -> None:
        number = self.passes
        error = self._peers.find_failure(self._segment)
        if error is None:
            lost = self._peers.find_lost()
            if lost:
                error = PeerLost(f"{lost} in the middle of a collective.")
            elif waited_s > self._timeout_s:
                (place,) = self._peers.places([other])
                error = Stalled(stopped_rank_text(self._peers.name(other), self._timeout_s, place))
        if error is not None and self._words[index] < number:  # else the rank passed before it was lost
            raise error


def wait_until(
    ready: Callable[[], bool], check: Callable[[float], None], spins: int, max_sleep_s: float = _MAX_SLEEP_S
) -> None:
    """Return when ``ready()`` is true: spin first, as most waits are short, then sleep.

    There may be more ranks than cores, and other threads of this process may wait
    for the interpreter lock. Each spin yields the core, and every fourth also
    releases the interpreter lock, which sched_yield does not do. (time.sleep(0)
    does both, but in Python 3.11 it sleeps for the kernel's timer slack of 50
    microseconds.)

    Args:
        ready: a cheap condition, as it is evaluated often.
        check: called about every 50 ms with the seconds waited; raises an error to end the wait.
        spins: number of spins before the first sleep.
        max_sleep_s: of one sleep; each is longer than the one before.
    """
    for spin in range(spins):
        if ready():
            return
        if spin % _YIELDS_PER_SLEEP:
            os.sched_yield()
        else:
            select.select((), (), (), 0)
    began = time.monotonic()
    next_check = began + _CHECK_INTERVAL_S
    pause = _FIRST_SLEEP_S
    while not ready():
        now = time.monotonic()
        if now >= next_check:
            check(now - began)
            next_check = now + _CHECK_INTERVAL_S
        time.sleep(pause)
        pause = min(pause * 1.5, max_sleep_s)
