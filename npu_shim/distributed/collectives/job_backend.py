"""The parts that all backends have: the groups that are open or being opened, and the end of the connection."""

from __future__ import annotations

import abc
import atexit
import os
import threading
from typing import Sequence

from npu_shim.distributed.collectives.argument_checks import check_members
from npu_shim.distributed.collectives.buffer_pool import BufferPool
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.distributed.collectives.transport import GroupBackend

_PAIR_CHUNK_BYTES = 512 << 10


class JobBackend(abc.ABC):
    """This process as a rank of a job; ``world`` is the group of all ranks.

    Args:
        rank: the rank of this process.
        size: the number of ranks.
        chunk_bytes: size of a slot of a group.
        pool: for the results of collectives.
    """

    world: ProcessGroup

    def __init__(self, rank: int, size: int, chunk_bytes: int, pool: BufferPool) -> None:
        self.rank, self.size, self._chunk_bytes, self._pool = rank, size, chunk_bytes, pool
        self._pid, self._closed = os.getpid(), False
        self._opening = threading.Lock()
        self._groups: dict[tuple[str, tuple[int, ...]], _OpenGroup] = {}

    def group(self, name: str, ranks: Sequence[int]) -> ProcessGroup:
        """Return the group of some ranks; the first call waits until every member on this host has called it.

        Args:
            name: name of the group.
            ranks: world ranks of its members, this one among them, in the order of the group.
        Returns:
            A ProcessGroup; the same one each time.
        Raises:
            ValueError: the ranks are not ranks of this job, or this rank is not among them.
            PeerLost, Stalled: a member on this host does not join.
        """
        members = tuple(ranks)
        check_members(name, members, self.rank, self.size)
        return self._open_group_once(name, members, self._chunk_bytes)

    def close(self) -> None:
        """Leave the job, and show the ranks that still need this one why. Runs at process exit, too."""
        atexit.unregister(self.close)
        if self._closed or os.getpid() != self._pid:  # a forked child is not a rank
            return
        self._closed = True
        self._leave()

    @abc.abstractmethod
    def _connect(self, name: str, members: tuple[int, ...], chunk_bytes: int) -> GroupBackend:
        """Connect with the members of a group."""

    @abc.abstractmethod
    def _leave(self) -> None:
        """Leave the job."""

    def _open_group_once(self, name: str, members: tuple[int, ...], chunk_bytes: int) -> ProcessGroup:
        with self._opening:
            opened = self._groups.setdefault((name, members), _OpenGroup())
        with opened.lock:  # not self._opening: another group may be opened while this one waits
            if opened.group is None:
                opened.group = self._process_group(name, members, self._connect(name, members, chunk_bytes))
        return opened.group

    def _process_group(self, name: str, members: tuple[int, ...], backend: GroupBackend) -> ProcessGroup:
        def pair(low: int, high: int) -> ProcessGroup:
            return self._open_group_once(f"{name} {low}-{high}", (members[low], members[high]), _PAIR_CHUNK_BYTES)

        return ProcessGroup(name, members, members.index(self.rank), backend, pair, self._pool)


class _OpenGroup:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.group: ProcessGroup | None = None
