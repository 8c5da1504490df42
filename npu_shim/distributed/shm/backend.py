"""Joins this process to the ranks of its job on this host."""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
from typing import Sequence

from npu_shim._env import COLLECTIVE_TIMEOUT_S, CONNECT_TIMEOUT_S
from npu_shim.distributed.collectives.buffer_pool import Memory
from npu_shim.distributed.collectives.ending import how_it_ended
from npu_shim.distributed.collectives.process_group import Group, check_members
from npu_shim.distributed.shm import job_directory as folders, rendezvous as meeting, segment as seg
from npu_shim.distributed.shm.barrier import Floor
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.rank_lock import RankLock
from npu_shim.distributed.shm.scheduler import Turns
from npu_shim.distributed.shm.segment import Layout, Segment, fence
from npu_shim.distributed.shm.slots import Sharing

_PAIR_CHUNK = 512 << 10


class Engine:
    """This process as a rank of a job; ``world`` is the group of all ranks. join() makes it."""

    def __init__(
        self,
        folder: str,
        lock: RankLock,
        world: Segment,
        rank: int,
        stall_timeout_s: float,
        world_name: str,
        memory: Memory,
    ) -> None:
        self.rank, self.size = rank, world.layout.size
        self._folder, self._lock, self._segment, self._stall_timeout_s = folder, lock, world, stall_timeout_s
        self._pid, self._closed = os.getpid(), False
        self._opening, self._memory = threading.Lock(), memory
        self._groups: dict[tuple[str, tuple[int, ...]], _Opened] = {}
        self._times: dict[tuple[str, tuple[int, ...]], int] = {}
        self.world = self._group_on(world, world_name, list(range(self.size)))
        atexit.register(self.close)

    def group(self, name: str, ranks: Sequence[int]) -> Group:
        """The group of some ranks; the first call waits until every member has called it.

        Args:
            name: the group's.
            ranks: world ranks of its members, this one among them, in the order of the group.
        Returns:
            A Group; the same one until drop().
        Raises:
            ValueError: the ranks are not ranks of this job, or this one is not among them.
            PeerLost, Stalled: a member does not come.
        """
        members = tuple(ranks)
        check_members(name, members, self.rank, self.size)
        return self._open(name, members, self._segment.layout.chunk_bytes)

    def drop(self, name: str, ranks: Sequence[int]) -> None:
        """Forgets a group; its memory is freed when its last collective is over."""
        with self._opening:
            self._groups.pop((name, tuple(ranks)), None)

    def close(self) -> None:
        """Leaves the job: others who need this rank are told so. Done at the end of the process by itself."""
        atexit.unregister(self.close)
        if self._closed or os.getpid() != self._pid:  # a forked child is no rank
            return
        self._closed = True
        self._segment.write_text(self._segment.rank_text(self.rank), how_it_ended())
        fence()
        self._segment.words[self._segment.page(self.rank) + seg.RANK_STATE] = seg.LEFT
        self._lock.give_back()
        folders.tidy(self._folder)

    def _open(self, name: str, members: tuple[int, ...], chunk_bytes: int) -> Group:
        with self._opening:
            opened = self._groups.get((name, members))
            if opened is None:
                time = self._times[name, members] = self._times.get((name, members), 0) + 1
                opened = self._groups[name, members] = _Opened(time)
        with opened.lock:  # not self._opening: another group may be opened while this one waits
            if opened.group is None:
                opened.group = self._group_on(self._meet(name, members, opened.time, chunk_bytes), name, list(members))
        return opened.group

    def _meet(self, name: str, members: tuple[int, ...], time: int, chunk_bytes: int) -> Segment:
        if len(members) == 1:
            return Segment.private(Layout(1, chunk_bytes))
        world = self._segment
        run = world.words[world.page(0) + seg.LIFE]
        told = hashlib.blake2b(repr((run, name, members, time)).encode("utf-8"), digest_size=12).hexdigest()
        peers = Peers(self._folder, world, list(members), self.rank)
        return meeting.open_group(
            folders.segment_path(self._folder, told),
            list(members),
            members.index(self.rank),
            self._lock.life,
            meeting.Clock(self._stall_timeout_s),
            peers.lost,
            chunk_bytes,
        )

    def _group_on(self, segment: Segment, name: str, members: list[int]) -> Group:
        peers = Peers(self._folder, self._segment, members, self.rank)
        place = members.index(self.rank)
        floor = Floor(segment, place, peers, self._stall_timeout_s)
        turns = Turns(segment, place, peers, floor, self._stall_timeout_s)

        def pair(low: int, high: int) -> Group:
            return self._open(f"{name} {low}-{high}", (members[low], members[high]), _PAIR_CHUNK)

        return Group(name, members, Sharing(turns, floor), pair, self._memory)


class _Opened:
    """A group that is being opened, or is open; the n-th of its name."""

    def __init__(self, time: int) -> None:
        self.time = time
        self.lock = threading.Lock()
        self.group: Group | None = None


def join(
    rank: int,
    size: int,
    job: str,
    *,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    stall_timeout_s: float = COLLECTIVE_TIMEOUT_S,
    chunk_bytes: int | None = None,
    world_name: str = "world",
    kept_bytes: int | None = None,
    base: str | None = None,
) -> Engine:
    """Meets the other ranks of a job on this host.

    Args:
        rank, size: this process's number and how many there are.
        job: what tells this job from others of this user on this host.
        connect_timeout_s: how long to wait for the others to start.
        stall_timeout_s: how long a collective waits for a rank that lives and does not come.
        chunk_bytes: size of a slot, by rank 0's choice; by the number of ranks and the free memory when None.
        world_name: name of the group of all ranks, for messages.
        kept_bytes: how much memory stays for the next results at most; see Memory when None.
        base: where the job's folder goes; /dev/shm, or without it the folder for temporary files, when None.
    Returns:
        An Engine.
    Raises:
        ValueError: the numbers are not allowed.
        RankTaken, Mismatch, PeerLost, Stalled: the ranks did not meet.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank={rank} and size={size} are not allowed: rank must be 0 to size - 1.")
    if chunk_bytes is not None and (chunk_bytes < seg.PAGE or chunk_bytes % seg.PAGE):
        raise ValueError(f"chunk_bytes={chunk_bytes} is not allowed: it must be a multiple of {seg.PAGE}.")
    folder = folders.job_folder(job, base)
    clock = meeting.Clock(connect_timeout_s)
    if rank == 0:
        folders.tidy_other_jobs(folder)
    lock = folders.lock_rank(folder, rank, job)
    try:
        world = (
            meeting.open_world(folder, lock, size, chunk_bytes, clock)
            if rank == 0
            else meeting.join_world(folder, lock, rank, size, clock)
        )
    except BaseException:
        lock.give_back()
        folders.tidy(folder)
        raise
    return Engine(folder, lock, world, rank, stall_timeout_s, world_name, Memory(kept_bytes))
