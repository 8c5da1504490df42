"""Where the ranks of a group exchange data, and how they keep step.

Each rank has a slot in each of two halves. Ranks write their own slot, meet, and
read the others'; then they turn to the other half. One meeting per half is
enough: who writes a half again has met the others in the other half since, so
that they have read it. For that the half is kept from one collective to the next.
"""

from __future__ import annotations

import numpy as np

from npu_shim.distributed.collectives.errors import PeerLost, Stalled
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.segment import Segment, fence
from npu_shim.distributed.shm.waiting import wait_until

_SPINS = 1000


class Floor:
    """The slots of a group, used by one collective at a time.

    ``size`` is the number of ranks, ``place`` this rank's number, ``chunk`` the bytes of a slot.
    """

    def __init__(self, segment: Segment, place: int, peers: Peers, timeout_s: float) -> None:
        self.size, self.place, self.chunk = segment.layout.size, place, segment.layout.chunk_bytes
        self.meetings = 0
        self._segment, self._peers, self._timeout_s = segment, peers, timeout_s
        self._words = segment.words
        counters = segment.counters()
        self._mine = counters[place]
        self._others = [(index, other) for other, index in enumerate(counters) if other != place]
        self._half = 0

    def slots(self, dtype: np.dtype, count: int) -> list[np.ndarray]:
        """Every rank's slot of this half as ``count`` numbers."""
        half, needed = self._segment.slots[self._half], count * dtype.itemsize
        return [half[rank, :needed].view(dtype) for rank in range(self.size)]

    def turn(self) -> None:
        """Goes to the other half."""
        self._half ^= 1

    def meet(self) -> None:
        """Returns when every rank has come here; what they wrote before can then be read.

        Raises:
            PeerLost, Stalled: a rank does not come.
        """
        self.meetings += 1
        words, number = self._words, self.meetings
        fence()
        words[self._mine] = number
        for index, other in self._others:
            if words[index] < number:
                wait_until(lambda: words[index] >= number, lambda waited_s: self._check(waited_s, index, other), _SPINS)
        fence()

    def _check(self, waited_s: float, index: int, other: int) -> None:
        number = self.meetings
        error = self._peers.broken(self._segment)
        if error is None:
            lost = self._peers.lost()
            if lost:
                error = PeerLost(f"{lost} in the middle of a collective.")
            elif waited_s > self._timeout_s:
                error = Stalled(
                    f"{self._peers.name(other)} stopped in the middle of a collective for {self._timeout_s:g} s."
                )
        if error is not None and self._words[index] < number:  # else it came before it was lost
            raise error
