"""The rendezvous of the ranks of a job on one host: they find each other and agree on a shared memory segment.

1. Each rank locks its file ``rank_<r>`` in the job directory while it is alive.
2. Rank 0 creates a segment with a random name and publishes the name in its lock file.
3. The other ranks map the segment of a *live* rank 0 in which their own page is
   free, so they never join a job that is ending, and register themselves.
4. When all ranks have registered, rank 0 removes the segment's name and only then
   allocates its memory: even kill -9 leaves nothing but empty files.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import Callable, Sequence

from npu_shim.distributed.collectives import errors
from npu_shim.distributed.shm import rank_lock, segment as layout
from npu_shim.distributed.shm.job_directory import lock_path, remove_if_exists, segment_path
from npu_shim.distributed.shm.rank_lock import Holder, RankLock
from npu_shim.distributed.shm.segment import Layout, Segment, fence

_MAX_PAUSE_S = 0.02
_FREE_MEMORY_SHARE = 4  # at most a quarter of the free memory
_SEGMENT_BYTES, _MIN_CHUNK_BYTES, _MAX_CHUNK_BYTES = 64 << 20, 64 << 10, 2 << 20


class Deadline:
    """The time limit of a rendezvous."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._began = time.monotonic()
        self._pause = 0.0005

    def pause_or_raise_stalled(self, describe: Callable[[], str]) -> None:
        """Sleep for a moment.

        Args:
            describe: returns which ranks did not join, for the error.
        Raises:
            Stalled: the time limit is over.
        """
        if time.monotonic() - self._began > self.timeout_s:
            raise errors.Stalled(f"{describe()} within {self.timeout_s:g} s.")
        time.sleep(self._pause)
        self._pause = min(self._pause * 1.3, _MAX_PAUSE_S)


def create_world(
    directory: str, lock: RankLock, numbers: Sequence[int], chunk_bytes: int | None, deadline: Deadline
) -> Segment:
    """Create the segment of the world group and wait until all ranks have registered. Rank 0 calls this.

    Args:
        directory: the job directory.
        lock: of this rank.
        numbers: the number of each rank in messages.
        chunk_bytes: size of a slot; None to choose one.
        deadline: time limit.
    """
    size = len(numbers)
    name = secrets.token_hex(8)
    path = segment_path(directory, name)
    world = Segment.create(path, Layout(size, chunk_bytes or chunk_bytes_for(size, directory)))
    try:
        _register_rank(world, 0, lock.incarnation)
        lock.publish(name)
        _await_members_and_allocate_memory(
            world, path, deadline, lambda: _early_death_text(directory, world, numbers), list(numbers)
        )
    finally:
        remove_if_exists(path)
    return world


def join_world(directory: str, lock: RankLock, rank: int, numbers: Sequence[int], deadline: Deadline) -> Segment:
    """Join the segment of rank 0. Every other rank calls this. For the arguments see create_world."""
    first = f"rank {numbers[0]}"
    while True:
        root = rank_lock.find_other_holder(lock_path(directory, 0))
        world = _find_ready_segment(directory, root, rank, len(numbers))
        if world is not None:
            break
        old = f" (process {root.pid} is {first} of an earlier run that has not ended. End it)" if root else ""
        deadline.pause_or_raise_stalled(lambda: f"{first} did not join{old}")
    _register_rank(world, rank, lock.incarnation)
    root_incarnation = world.words[world.first_word_of_page(0) + layout.INCARNATION]

    def find_lost() -> str | None:
        now = rank_lock.find_other_holder(lock_path(directory, 0))
        if now is not None and now.incarnation == root_incarnation:
            return None
        return f"{first} died before all ranks had joined"

    _await_ready(world, deadline, find_lost, list(numbers))
    return world


def _find_ready_segment(directory: str, root: Holder | None, rank: int, size: int) -> Segment | None:
    if root is None or root.published is None:
        return None
    try:
        world = Segment.open(segment_path(directory, root.published))
    except FileNotFoundError:
        return None
    if world.layout.size != size:
        text = (
            f"rank 0 (process {root.pid}) was started for {world.layout.size} ranks, rank {rank} (process "
            f"{os.getpid()}) for {size}. Give every rank the same RANK_SIZE and rank table."
        )
        error = errors.Mismatch(text)
        _reject_segment(world, error)
        raise error
    # Rank 0 registers before it publishes the name; a page that is in use belongs to an earlier run.
    return None if world.words[world.first_word_of_page(rank) + layout.INCARNATION] else world


def _reject_segment(segment: Segment, error: errors.CollectiveError) -> None:
    """Show the rank that sets up this segment that the group cannot be complete, and why."""
    segment.write_text(layout.SETUP_TEXT, str(error))
    fence()
    segment.words[layout.REJECTED] = errors.error_code(error)


def _register_rank(segment: Segment, rank: int, incarnation: int) -> None:
    page = segment.first_word_of_page(rank)
    segment.words[page + layout.PID] = os.getpid()
    fence()
    segment.words[page + layout.INCARNATION] = incarnation


def open_group_segment(
    path: str,
    members: list[int],
    group_rank: int,
    incarnation: int,
    deadline: Deadline,
    find_lost: Callable[[], str | None],
    chunk_bytes: int,
) -> Segment:
    """Return the segment of a group: its first member creates it, the others map it.

    Args:
        path: of the segment; every member derives the same one.
        members: world ranks.
        group_rank: the rank of this process in the group.
        incarnation: of this process.
        deadline: time limit.
        find_lost: returns which member died or exited; None while all are alive.
        chunk_bytes: size of a slot.
    """
    if group_rank == 0:
        group = Segment.create(path + ".new", Layout(len(members), chunk_bytes))
        try:
            _register_rank(group, 0, incarnation)
            os.rename(path + ".new", path)
            _await_members_and_allocate_memory(group, path, deadline, find_lost, members)
        finally:
            remove_if_exists(path)
        return group
    while True:
        try:
            group = Segment.open(path)
            break
        except FileNotFoundError:
            text = find_lost()
            if text:
                raise errors.PeerLost(text)
            deadline.pause_or_raise_stalled(lambda: f"rank {members[0]} did not create the group of ranks {members}")
    _register_rank(group, group_rank, incarnation)
    _await_ready(group, deadline, find_lost, members)
    return group


def _await_members_and_allocate_memory(
    segment: Segment, path: str, deadline: Deadline, find_lost: Callable[[], str | None], members: list[int]
) -> None:
    """Wait until all members have registered, and allocate the memory."""
    try:
        while True:
            missing, text = _unregistered_ranks(segment), find_lost()
            if segment.words[layout.REJECTED]:  # read last: a rank rejects before it exits
                fence()
                raise errors.error_from_code(segment.words[layout.REJECTED], segment.read_text(layout.SETUP_TEXT))
            if not missing:
                break
            if text:
                raise errors.PeerLost(text)
            deadline.pause_or_raise_stalled(lambda: f"{_missing_ranks_text(segment, members)} did not join")
        remove_if_exists(path)
        segment.allocate_memory()
    except errors.CollectiveError as error:
        segment.write_text(layout.SETUP_TEXT, str(error))
        fence()
        segment.words[layout.STATE] = layout.FAILED + errors.error_code(error)
        raise
    fence()
    segment.words[layout.STATE] = layout.READY


def _await_ready(segment: Segment, deadline: Deadline, find_lost: Callable[[], str | None], members: list[int]) -> None:
    """Wait until the rank that sets up the segment has seen all members."""
    try:
        while segment.words[layout.STATE] == layout.SETTING_UP:
            text = find_lost()
            if text and segment.words[layout.STATE] == layout.SETTING_UP:
                raise errors.PeerLost(text)
            deadline.pause_or_raise_stalled(
                lambda: (
                    f"{_missing_ranks_text(segment, members)} did not join"
                    if _unregistered_ranks(segment)
                    else f"rank {members[0]} did not complete the setup"
                )
            )
    except errors.CollectiveError as error:
        _reject_segment(segment, error)
        raise
    fence()
    state = segment.words[layout.STATE]
    if state != layout.READY:
        raise errors.error_from_code(state - layout.FAILED, segment.read_text(layout.SETUP_TEXT))


def _unregistered_ranks(segment: Segment) -> list[int]:
    """Return the ranks of a group that have not registered yet."""
    return [
        rank
        for rank in range(segment.layout.size)
        if not segment.words[segment.first_word_of_page(rank) + layout.INCARNATION]
    ]


def _missing_ranks_text(segment: Segment, members: list[int]) -> str:
    """Return 'rank 3' or 'ranks 1, 3' for the members that have not registered yet; empty if all have."""
    missing = [members[rank] for rank in _unregistered_ranks(segment)]
    return f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}" if missing else ""


def chunk_bytes_for(size: int, directory: str) -> int:
    """Return the size of a slot: large enough to make barriers cheap, small enough for the caches and free memory."""
    status = os.statvfs(directory)
    available = min(_SEGMENT_BYTES, status.f_bavail * status.f_frsize // _FREE_MEMORY_SHARE)
    chunk = max(_MIN_CHUNK_BYTES, min(_MAX_CHUNK_BYTES, available // (2 * size)))
    return chunk // layout.PAGE * layout.PAGE


def _early_death_text(directory: str, world: Segment, numbers: Sequence[int]) -> str | None:
    for rank in range(1, world.layout.size):
        incarnation = world.words[world.first_word_of_page(rank) + layout.INCARNATION]
        if incarnation:
            now = rank_lock.find_other_holder(lock_path(directory, rank))
            if now is None or now.incarnation != incarnation:
                process = world.words[world.first_word_of_page(rank) + layout.PID]
                return f"rank {numbers[rank]} (process {process}) died before all ranks had joined"
    return None
