"""The TensorFlow server backend: connects this process with the other ranks of its job on any hosts."""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
import time
from collections import defaultdict
from typing import Callable, Sequence, TypeVar

import numpy as np

from npu_shim._env import COLLECTIVE_TIMEOUT_S, CONNECT_TIMEOUT_S
from npu_shim.distributed.collectives.buffer_pool import BufferPool
from npu_shim.distributed.collectives.checks import check_members
from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, PeerLost, Stalled, exit_reason
from npu_shim.distributed.collectives.op_key import name_of, token_of
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.distributed.collectives.transport import GroupBackend, Transport
from npu_shim.distributed.servers import peers as peers_module
from npu_shim.distributed.servers.call import Call
from npu_shim.distributed.servers.office import MEETING, Announcement, Office

T = TypeVar("T")
CHUNK_BYTES = 4 << 20
_GREET_EVERY_S, _LEAVE_S, _GIVE_UP_S = 0.2, 5.0, 1.0
_ANSWERS = {
    peers_module.UP: "another program listens at",
    peers_module.DOWN: "no process listens at",
    peers_module.SILENT: "no route to",
}


class Backend:
    """This process as a rank of a job; ``world`` is the group of all ranks. Created by join()."""

    def __init__(
        self, office: Office, size: int, stall_timeout_s: float, chunk_bytes: int, world_name: str, pool: BufferPool
    ) -> None:
        self.rank, self.size = office.rank, size
        self._office, self._stall_timeout_s, self._chunk_bytes = office, stall_timeout_s, chunk_bytes
        self._pid, self._closed = os.getpid(), False
        self._opening, self._pool = threading.Lock(), pool
        self._groups: dict[tuple[str, tuple[int, ...]], ProcessGroup] = {}
        self._times: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
        self.world = self.group(world_name, range(size))
        atexit.register(self.close)

    def group(self, name: str, ranks: Sequence[int]) -> ProcessGroup:
        """The group of some ranks.

        Args:
            name: the group's.
            ranks: world ranks of its members, this one among them, in the order of the group.
        Returns:
            A ProcessGroup; the same one until drop().
        Raises:
            ValueError: the ranks are not ranks of this job, or this one is not among them.
        """
        members = tuple(ranks)
        check_members(name, members, self.rank, self.size)
        with self._opening:
            if (name, members) not in self._groups:
                self._times[name, members] += 1
                self._groups[name, members] = self._made(name, members, self._times[name, members])
            return self._groups[name, members]

    def drop(self, name: str, ranks: Sequence[int]) -> None:
        """Forgets a group."""
        with self._opening:
            self._groups.pop((name, tuple(ranks)), None)

    def close(self) -> None:
        """Leave the job, and notify the other ranks. Runs at process exit, too."""
        atexit.unregister(self.close)
        if self._closed or os.getpid() != self._pid:  # a forked child is no rank
            return
        self._closed = True
        self._office.leave(exit_reason(), _LEAVE_S)

    def _made(self, name: str, members: tuple[int, ...], time_: int) -> ProcessGroup:
        identity = hashlib.blake2b(repr((name, members, time_)).encode("utf-8"), digest_size=8).digest()
        sending = Sending(
            self._office, int.from_bytes(identity, "little"), members, self._chunk_bytes, self._stall_timeout_s
        )

        def pair(low: int, high: int) -> ProcessGroup:
            return self.group(f"{name} {low}-{high}", (members[low], members[high]))

        return ProcessGroup(name, members, sending, pair, self._pool)


class Sending(GroupBackend):
    """A process group whose ranks send each other letters; any number of collectives run at a time."""

    def __init__(self, office: Office, group: int, ranks: tuple[int, ...], chunk_bytes: int, timeout_s: float) -> None:
        self.size, self.rank = len(ranks), ranks.index(office.rank)
        self._office, self._group, self._ranks = office, group, ranks
        self._chunk_bytes, self._timeout_s = chunk_bytes, timeout_s
        self._lock = threading.Lock()
        self._counts: dict[str, int] = defaultdict(int)
        self._pid = os.getpid()

    def run(self, key: str, request: str, digest: bytes, work: Callable[[Transport], T]) -> T:
        if os.getpid() != self._pid:
            raise CollectiveError(
                f"{key}: this process was forked from a rank. Run collectives in the rank's own process."
            )
        self._office.check(self._group)
        with self._lock:
            count = self._counts[name_of(key)]
            self._counts[name_of(key)] += 1
        token = token_of(key, count)
        mine = Announcement(digest, key, request, np.empty(0, np.uint8))
        call = Call(self._office, self._group, self._ranks, token, mine, self._chunk_bytes, self._timeout_s)
        try:
            result = work(call)
            call.finish()
            return result
        except Mismatch:
            raise
        except BaseException as error:
            failure = (
                error
                if isinstance(error, CollectiveError)
                else CollectiveError(
                    f"{key} ({request}): {self._office.peers.me.name} failed: {type(error).__name__}: {error}"
                )
            )
            self._office.tell_broken(self._group, self._ranks, failure)
            raise
        finally:
            self._office.forget(self._group, token)


def join(
    rank: int,
    size: int,
    job: str,
    *,
    addresses: Sequence[str],
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    stall_timeout_s: float = COLLECTIVE_TIMEOUT_S,
    chunk_bytes: int = CHUNK_BYTES,
    world_name: str = "world",
    pool_bytes: int | None = None,
    where: Callable[[], str] | None = None,
) -> Backend:
    """Connect with the other ranks of a job.

    Args:
        rank: the rank of this process.
        size: number of ranks.
        job: identifies the job.
        addresses: 'host:port' of each rank; this one listens at the port of its own.
        connect_timeout_s: how long to wait for the others to start.
        stall_timeout_s: how long a collective waits for a rank that lives and does not come.
        chunk_bytes: the largest piece in which numbers travel.
        world_name: name of the group of all ranks, for messages.
        pool_bytes: how much memory stays for the next results at most; see BufferPool when None.
        where: returns the line of the script that this process is at, for the ranks that wait for it.
    Returns:
        A Backend.
    Raises:
        ValueError: an argument is not allowed.
        RankTaken, Mismatch, PeerLost, Stalled: the rendezvous failed.
    """
    if not 0 <= rank < size or len(addresses) != size:
        raise ValueError(
            f"rank={rank}, size={size} and {len(addresses)} addresses are not allowed. Use a rank of 0 "
            "to size - 1, and one address per rank."
        )
    office = Office(rank, addresses, job, where)
    try:
        _meet(office, connect_timeout_s)
    except BaseException as error:
        if isinstance(error, CollectiveError):
            office.tell_broken(MEETING, range(size), error)
        office.leave(f"could not join ({error})", _GIVE_UP_S)
        raise
    return Backend(office, size, stall_timeout_s, chunk_bytes, world_name, BufferPool(pool_bytes))


def _meet(office: Office, timeout_s: float) -> None:
    """Exchange identities until every rank knows every other rank."""
    give_up = time.monotonic() + timeout_s
    while True:
        with office.lock:
            unknown = [peer for peer in office.peers.others if not peer.knows_me]
        for peer in unknown:
            if peers_module.probe(peer.address) == peers_module.UP:
                office.greet(peer)
        with office.lock:
            office.greeted.wait_for(
                lambda: office.refusal or all(peer.knows_me for peer in office.peers.others), _GREET_EVERY_S
            )
            unknown = [peer for peer in office.peers.others if not peer.knows_me]
        if office.refusal is not None:
            raise office.refusal
        if not unknown:
            return
        office.peers.look([peer.rank for peer in office.peers.others if peer.life])
        gone = [peer.lost for peer in office.peers.others if peer.gone]
        if gone:
            # Read again: one that refuses says so before it leaves.
            raise office.refusal or PeerLost(f"{gone[0]} before all ranks had joined")
        if time.monotonic() > give_up:
            names = ", ".join(str(peer.rank) for peer in unknown)
            where = ", ".join(f"{_ANSWERS[peers_module.probe(peer.address)]} {peer.address}" for peer in unknown)
            raise Stalled(
                f"rank{'s' if len(unknown) > 1 else ''} {names} did not join within {timeout_s:g} s: {where}."
            )
