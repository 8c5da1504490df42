"""The MPI backend: connects this process with the other ranks of its job on any hosts."""

from __future__ import annotations

import atexit
import hashlib
import struct
from typing import Callable, Sequence

from npu_shim._host.host_env import COLLECTIVE_TIMEOUT_S, CONNECT_TIMEOUT_S
from npu_shim.distributed import shm
from npu_shim.distributed.collectives.buffer_pool import BufferPool
from npu_shim.distributed.collectives.errors import CollectiveError, exit_reason_text
from npu_shim.distributed.collectives.job_backend import JobBackend
from npu_shim.distributed.collectives.transport import GroupBackend, Transport
from npu_shim.distributed.mpi.host_transport import HostTransport
from npu_shim.distributed.mpi.links import SPINS, Links
from npu_shim.distributed.mpi.order import LeaderOrder
from npu_shim.distributed.mpi.span import Span
from npu_shim.distributed.mpi.wire import Reached, Wire, import_mpi
from npu_shim.distributed.shm.announcements import Announcements
from npu_shim.distributed.shm.barrier import Barrier
from npu_shim.distributed.shm.liveness import mark_failed
from npu_shim.distributed.shm.scheduler import Scheduler
from npu_shim.distributed.shm.segment import Segment
from npu_shim.distributed.shm.slot_transport import SharedMemoryTransport

_LEADER_FIRST_S = 10.0  # a leader knows the ranks of all hosts, so its error comes first


class Backend(JobBackend):
    """This process as a rank of a job on any hosts. Created by join()."""

    def __init__(
        self,
        rank: int,
        servers: Sequence[str],
        local: shm.Backend,
        connect_timeout_s: float,
        stall_timeout_s: float,
        world_name: str,
        pool: BufferPool,
    ) -> None:
        super().__init__(rank, len(servers), local.segment.layout.chunk_bytes, pool)
        self._servers, self._local, self._stall_timeout_s = tuple(servers), local, stall_timeout_s
        self._here = [other for other, server in enumerate(servers) if server == servers[rank]]
        self._announcements: dict[int, Announcements] = {}  # of the groups that this rank leads
        self._segments: dict[int, Segment] = {}
        self._wire = Wire(rank, self.size, servers, connect_timeout_s, self._announced_members, self._mark_failed)
        ranks = tuple(range(self.size))
        self.world = self._process_group(world_name, ranks, self._make_scheduler(local.segment, 0, ranks))
        atexit.register(self.close)

    def _leave(self) -> None:
        reason = exit_reason_text()
        self._local.close()
        self._wire.close(reason)

    def _connect(self, name: str, members: tuple[int, ...], chunk_bytes: int) -> GroupBackend:
        here = [self._here.index(member) for member in members if member in self._here]
        segment = self._local.join_segment(f"{name} {members}", here, chunk_bytes)
        identity = repr((name, members)).encode("utf-8")
        number = int.from_bytes(hashlib.blake2b(identity, digest_size=8).digest(), "little")
        return self._make_scheduler(segment, number, members)

    def _make_scheduler(self, segment: Segment, number: int, members: tuple[int, ...]) -> Scheduler:
        span = Span(members, self._servers, self.rank)
        peers = self._local.peers([self._here.index(member) for member in span.here])
        place = span.here.index(self.rank)
        timeout_s = self._stall_timeout_s
        is_remote = len(span.hosts) > 1
        order = LeaderOrder(self._wire, number, span) if is_remote and span.is_leader else None
        if is_remote and order is None:
            timeout_s += _LEADER_FIRST_S
        waiting = {"spins": SPINS} if is_remote else {}
        barrier = Barrier(segment, place, peers, timeout_s, **waiting)
        transport: Transport = SharedMemoryTransport(barrier)
        if is_remote:
            links = None if order is None else Links(self._wire, order, span, peers, segment, timeout_s)
            transport = HostTransport(span, members.index(self.rank), barrier, links)
        scheduler = Scheduler(segment, place, peers, barrier, transport, timeout_s, order, **waiting)
        if order is not None:
            order.announcements = self._announcements[number] = scheduler.announcements
            self._segments[number] = segment
        return scheduler

    def _announced_members(self, group: int, token: int, members: Sequence[int]) -> Reached:
        """Return which members on this host have announced a collective. See Wire."""
        if token and group in self._announcements:
            return self._announcements[group].announced_and_missing_ranks(struct.pack("<Q", token))
        here = [self._here.index(member) for member in members]
        peers = self._local.peers(here)
        places = peers.places(range(len(here)))
        return [], [(peers.name(member), place, []) for member, place in enumerate(places)]

    def _mark_failed(self, group: int, error: CollectiveError) -> None:
        """Show the ranks of this host that a group has failed on another one."""
        if group in self._segments:
            mark_failed(self._segments[group], 0, error)


def join_job(
    rank: int,
    size: int,
    job: str,
    *,
    servers: Sequence[str],
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    stall_timeout_s: float = COLLECTIVE_TIMEOUT_S,
    chunk_bytes: int | None = None,
    world_name: str = "world",
    pool_bytes: int | None = None,
    where: Callable[[], str] | None = None,
) -> Backend:
    """Connect with the other ranks of a job. mpirun must have started them.

    Args:
        rank: the rank of this process.
        size: number of ranks.
        job: identifies the job among the jobs of this user.
        servers: the server of each rank; ranks of one server share memory.
        connect_timeout_s: how long to wait for the other ranks to join.
        stall_timeout_s: how long a collective waits for a live rank.
        chunk_bytes: size of a slot; when None, from the number of ranks and the free memory.
        world_name: name of the group of all ranks, for messages.
        pool_bytes: memory limit of the buffer pool; see BufferPool when None.
        where: returns the line of the script that this process is at, for the ranks that wait for it.
    Returns:
        A Backend.
    Raises:
        ValueError: an argument is not allowed.
        RankTaken, Mismatch, PeerLost, Stalled: the rendezvous failed.
        CollectiveError: mpi4py or its MPI library is missing or does not start.
    """
    if not 0 <= rank < size or len(servers) != size:
        raise ValueError(
            f"rank={rank}, size={size} and {len(servers)} servers are not allowed. Use a rank of 0 to size - 1, and "
            "one server for each rank."
        )
    import_mpi()
    here = [other for other in range(size) if servers[other] == servers[rank]]
    local = shm.join_job(
        here.index(rank),
        len(here),
        f"{job} on server {here[0]}",  # two servers may be one machine
        connect_timeout_s=connect_timeout_s,
        stall_timeout_s=stall_timeout_s,
        chunk_bytes=chunk_bytes,
        pool_bytes=0,
        where=where,
        numbers=here,
        host=servers[rank],
    )
    try:
        return Backend(rank, servers, local, connect_timeout_s, stall_timeout_s, world_name, BufferPool(pool_bytes))
    except BaseException:
        local.close()
        raise
