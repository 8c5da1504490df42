"""A group's exchange of numbers through its slots in shared memory, one collective at a time."""

from __future__ import annotations

from typing import Callable, Sequence, TypeVar

import numpy as np

from npu_shim.distributed.collectives.buffer_list import Pieces
from npu_shim.distributed.collectives.transport import Combine, Exchange, Members
from npu_shim.distributed.shm import moving, reducing
from npu_shim.distributed.shm.barrier import Floor
from npu_shim.distributed.shm.scheduler import Turns

T = TypeVar("T")


class Slots(Exchange):
    """Every collective of a group uses the same slots when it has its turn."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor

    def allreduce(self, source: Pieces, out: Pieces | None, dtype: np.dtype, combine: Combine) -> None:
        reducing.allreduce(self._floor, source, out, dtype, combine)

    def reduce_scatter(self, source: np.ndarray, out: np.ndarray, combine: Combine) -> None:
        reducing.reduce_scatter(self._floor, source, out, combine)

    def allgather(self, source: np.ndarray, out: np.ndarray) -> None:
        moving.allgather(self._floor, source, out)

    def broadcast(self, data: Pieces, root: int) -> None:
        moving.broadcast(self._floor, data, root)

    def all_to_all(
        self, source: np.ndarray, out: np.ndarray, counts: np.ndarray, send_at: Sequence[int], receive_at: Sequence[int]
    ) -> None:
        moving.all_to_all(self._floor, source, out, counts, send_at, receive_at)

    def meet(self) -> None:
        self._floor.meet()


class Sharing(Members):
    """The members of a group that share memory."""

    def __init__(self, turns: Turns, floor: Floor) -> None:
        self.place, self.size = floor.place, floor.size
        self._turns, self._slots = turns, Slots(floor)

    def run(self, key: str, asked: str, digest: bytes, work: Callable[[Exchange], T]) -> T:
        return self._turns.run(key, asked, digest, lambda: work(self._slots))
