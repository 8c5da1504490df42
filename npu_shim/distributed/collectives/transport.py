"""What an engine has to offer: ranks that come to a collective together, and ways to exchange numbers then."""

from __future__ import annotations

import abc
from typing import Callable, Sequence, TypeVar

import numpy as np

from npu_shim.distributed.collectives.buffer_list import Pieces

T = TypeVar("T")
Combine = Callable[[Sequence[np.ndarray], np.ndarray], None]


class Exchange(abc.ABC):
    """One collective for which all ranks of a group have come, or will. All arrays are flat.

    Every rank calls the same methods, with the sizes that all have agreed on.
    """

    @abc.abstractmethod
    def allreduce(self, source: Pieces, out: Pieces | None, dtype: np.dtype, combine: Combine) -> None:
        """Reduces numbers over all ranks, with the same bits for everyone.

        Args:
            source: this rank's numbers.
            out: where the result goes, of the same length; None where this rank does not need it.
            dtype: the type in which they are in memory.
            combine: reduces arrays in the order of the ranks, see reductions.combiner.
        """

    @abc.abstractmethod
    def reduce_scatter(self, source: np.ndarray, out: np.ndarray, combine: Combine) -> None:
        """Reduces as many blocks as there are ranks; rank r gets block r.

        Args:
            source: size * out.size numbers.
            out: this rank's block of the result.
            combine: reduces arrays.
        """

    @abc.abstractmethod
    def allgather(self, source: np.ndarray, out: np.ndarray) -> None:
        """Copies every rank's numbers to every rank; out is [size, source.size]."""

    @abc.abstractmethod
    def broadcast(self, data: Pieces, root: int) -> None:
        """Copies the root's bytes to every rank: its are read, the others' written."""

    @abc.abstractmethod
    def all_to_all(
        self, source: np.ndarray, out: np.ndarray, counts: np.ndarray, send_at: Sequence[int], receive_at: Sequence[int]
    ) -> None:
        """Copies a piece of each rank's numbers to each rank.

        Args:
            source, out: numbers.
            counts: [size, size]; counts[i, j] numbers go from rank i to rank j.
            send_at: where in source the piece for each rank begins.
            receive_at: where in out the piece of each rank goes.
        """

    @abc.abstractmethod
    def meet(self) -> None:
        """Returns when every rank has called it."""


class Members(abc.ABC):
    """The ranks of a group as one of them sees them: ``size`` of them, this one with number ``place``."""

    size: int
    place: int

    @abc.abstractmethod
    def run(self, key: str, asked: str, digest: bytes, work: Callable[[Exchange], T]) -> T:
        """Takes part in a collective.

        Args:
            key: its name, the same on every rank; the n-th use of a key here meets the n-th of every other rank.
            asked: what this rank asks for, for messages.
            digest: of asked; it has to be the same on every rank.
            work: exchanges the numbers.
        Returns:
            What work returns.
        Raises:
            Mismatch: the ranks ask for different things; the group goes on.
            PeerLost, Stalled: the group cannot go on; every later call raises as well.
        """
