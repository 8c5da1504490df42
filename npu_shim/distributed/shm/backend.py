"""The shared memory backend: connects this process with the other ranks of its job on this host."""

from __future__ import annotations

import atexit
import hashlib
from typing import Callable, Sequence

from npu_shim._host.host_env import COLLECTIVE_TIMEOUT_S, CONNECT_TIMEOUT_S
from npu_shim.distributed.collectives.buffer_pool import BufferPool
from npu_shim.distributed.collectives.errors import exit_reason_text
from npu_shim.distributed.collectives.job_backend import JobBackend
from npu_shim.distributed.collectives.transport import GroupBackend
from npu_shim.distributed.shm import job_directory as jobs, rendezvous, segment as layout
from npu_shim.distributed.shm.barrier import Barrier
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.rank_lock import RankLock
from npu_shim.distributed.shm.scheduler import Scheduler
from npu_shim.distributed.shm.script_lines import Answers
from npu_shim.distributed.shm.segment import Layout, Segment, fence
from npu_shim.distributed.shm.slot_transport import SharedMemoryTransport


class Backend(JobBackend):
    """This process as a rank of a job on this host, whose ``world`` is in ``segment``. Created by join()."""

    def __init__(
        self,
        directory: str,
        lock: RankLock,
        world: Segment,
        rank: int,
        stall_timeout_s: float,
        world_name: str,
        pool: BufferPool,
        where: Callable[[], str] | None,
        numbers: Sequence[int],
        host: str,
    ) -> None:
        super().__init__(rank, world.layout.size, world.layout.chunk_bytes, pool)
        self._numbers, self._host = numbers, host
        self._directory, self._lock, self.segment, self._stall_timeout_s = directory, lock, world, stall_timeout_s
        ranks = tuple(range(self.size))
        self.world = self._process_group(world_name, ranks, self._scheduler(world, ranks))
        self._answers = Answers(world, rank, where) if where is not None else None
        atexit.register(self.close)

    def _leave(self) -> None:
        if self._answers is not None:
            self._answers.end()
        self.segment.write_text(self.segment.text_offset(self.rank), exit_reason_text())
        fence()
        self.segment.words[self.segment.first_word_of_page(self.rank) + layout.RANK_STATE] = layout.LEFT
        self._lock.release()
        jobs.clean_up_job_directory(self._directory)

    def peers(self, members: Sequence[int]) -> Peers:
        """Return the ranks of a group on this host as this one sees them."""
        return Peers(self._directory, self.segment, list(members), self.rank, self._numbers, self._host)

    def join_segment(self, group: str, members: Sequence[int], chunk_bytes: int) -> Segment:
        """Return the segment of a group when every member has called this.

        Args:
            group: its name.
            members: its ranks on this host.
            chunk_bytes: size of a slot.
        Raises:
            PeerLost, Stalled: a member does not join.
        """
        if len(members) == 1:
            return Segment.create_private(Layout(1, chunk_bytes))
        run = self.segment.words[self.segment.first_word_of_page(0) + layout.INCARNATION]
        identity = repr((run, group, tuple(members))).encode("utf-8")
        return rendezvous.open_group_segment(
            jobs.segment_path(self._directory, hashlib.blake2b(identity, digest_size=12).hexdigest()),
            [self._numbers[member] for member in members],
            members.index(self.rank),
            self._lock.incarnation,
            rendezvous.Deadline(self._stall_timeout_s),
            self.peers(members).find_lost,
            chunk_bytes,
        )

    def _connect(self, name: str, members: tuple[int, ...], chunk_bytes: int) -> GroupBackend:
        return self._scheduler(self.join_segment(name, members, chunk_bytes), members)

    def _scheduler(self, segment: Segment, members: tuple[int, ...]) -> Scheduler:
        peers = self.peers(members)
        group_rank = members.index(self.rank)
        barrier = Barrier(segment, group_rank, peers, self._stall_timeout_s)
        return Scheduler(segment, group_rank, peers, barrier, SharedMemoryTransport(barrier), self._stall_timeout_s)


def join_job(
    rank: int,
    size: int,
    job: str,
    *,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    stall_timeout_s: float = COLLECTIVE_TIMEOUT_S,
    chunk_bytes: int | None = None,
    world_name: str = "world",
    pool_bytes: int | None = None,
    base: str | None = None,
    where: Callable[[], str] | None = None,
    numbers: Sequence[int] | None = None,
    host: str = "",
) -> Backend:
    """Connect with the other ranks of a job on this host.

    Args:
        rank: the rank of this process.
        size: number of ranks.
        job: identifies the job among the jobs of this user on this host.
        connect_timeout_s: how long to wait for the other ranks to join.
        stall_timeout_s: how long a collective waits for a live rank.
        chunk_bytes: size of a slot, as rank 0 chooses it; when None, from the number of ranks and the free memory.
        world_name: name of the group of all ranks, for messages.
        pool_bytes: memory limit of the buffer pool; see BufferPool when None.
        base: parent of the job directory; when None, /dev/shm, or the directory for temporary files without it.
        where: returns the line of the script that this process is at, for the ranks that wait for it.
        numbers: the number of each rank in messages; 0 to size - 1 when None.
        host: name of this host in messages; empty if the job has one host.
    Returns:
        A Backend.
    Raises:
        ValueError: an argument is not allowed.
        RankTaken, Mismatch, PeerLost, Stalled: the rendezvous failed.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank={rank} and size={size} are not allowed. Use a rank of 0 to size - 1.")
    if chunk_bytes is not None and (chunk_bytes < layout.PAGE or chunk_bytes % layout.PAGE):
        raise ValueError(f"chunk_bytes={chunk_bytes} is not allowed. Use a multiple of {layout.PAGE}.")
    numbers = range(size) if numbers is None else numbers
    directory = jobs.job_directory_path(job, base)
    deadline = rendezvous.Deadline(connect_timeout_s)
    if rank == 0:
        jobs.clean_up_other_jobs(directory)
    lock = jobs.lock_rank(directory, rank, job, numbers[rank])
    try:
        world = (
            rendezvous.create_world(directory, lock, numbers, chunk_bytes, deadline)
            if rank == 0
            else rendezvous.join_world(directory, lock, rank, numbers, deadline)
        )
    except BaseException:
        lock.release()
        jobs.clean_up_job_directory(directory)
        raise
    return Backend(
        directory, lock, world, rank, stall_timeout_s, world_name, BufferPool(pool_bytes), where, numbers, host
    )
