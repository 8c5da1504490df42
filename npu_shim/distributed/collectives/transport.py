"""The interface that a collective backend implements: process groups, and data transport within one collective."""

from __future__ import annotations

import abc
from typing import Callable, Sequence, TypeVar

import numpy as np

from npu_shim.distributed.collectives.buffer_list import BufferList
from npu_shim.distributed.collectives.reductions import Combiner

T = TypeVar("T")


class Transport(abc.ABC):
    """Data transport within one collective. All arrays are flat.

    Every rank of the group calls the same methods, with sizes that all ranks agree on.
    """

    @abc.abstractmethod
    def allreduce(self, source: BufferList, out: BufferList | None, dtype: np.dtype, combine: Combiner) -> None:
        """Reduce elements over all ranks; every rank gets the same bits.

        Args:
            source: the elements of this rank.
            out: the destination, of the same length; None if this rank does not need the result.
            dtype: the type of the elements in memory.
            combine: reduces arrays in rank order, see reductions.combiner.
        """

    @abc.abstractmethod
    def reduce_scatter(self, source: np.ndarray, out: np.ndarray, combine: Combiner) -> None:
        """Reduce one block per rank; rank r gets block r.

        Args:
            source: size * out.size elements.
            out: the block of this rank.
            combine: reduces arrays in rank order.
        """

    @abc.abstractmethod
    def allgather(self, source: np.ndarray, out: np.ndarray) -> None:
        """Copy the elements of every rank to every rank; out is [size, source.size]."""

    @abc.abstractmethod
    def broadcast(self, data: BufferList, root: int) -> None:
        """Copy the bytes of the root rank to every rank: read ``data`` on the root, write it elsewhere."""

    @abc.abstractmethod
    def all_to_all(
        self, source: np.ndarray, out: np.ndarray, counts: np.ndarray, send_at: Sequence[int], receive_at: Sequence[int]
    ) -> None:
        """Copy a segment from each rank to each rank.

        Args:
            source: the elements that this rank sends.
            out: the elements that it receives.
            counts: [size, size]; counts[i, j] elements go from rank i to rank j.
            send_at: the offset in source of the segment for each rank.
            receive_at: the offset in out of the segment of each rank.
        """

    @abc.abstractmethod
    def barrier(self) -> None:
        """Return when every rank has called it."""

    @abc.abstractmethod
    def finish(self) -> None:
        """Return when the memory of the collective may be used again; runs at its end."""


class GroupBackend(abc.ABC):
    """A process group as its backend sees it."""

    @abc.abstractmethod
    def run(self, key: str, request: str, digest: bytes, work: Callable[[Transport], T]) -> T:
        """Run one collective.

        Args:
            key: its name, the same on every rank; the n-th use of a key here matches the n-th use on every other rank.
            request: the operation with its types and shapes, for messages.
            digest: the digest of request, which must be the same on every rank.
            work: transports the data.
        Returns:
            The result of work.
        Raises:
            Mismatch: the requests of the ranks differ; the group stays usable.
            PeerLost, Stalled: the group is broken; every later call raises, too.
        """
