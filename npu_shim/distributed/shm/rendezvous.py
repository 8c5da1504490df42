"""How the ranks of a job on one host find each other and agree on one piece of shared memory.

1. Each rank locks its file ``rank_<r>`` in the job's folder for as long as it lives.
2. Rank 0 makes a segment with a random name and publishes the name in its lock file.
3. The others map the segment of a *living* rank 0 in which their place is free,
   so a job that is just dying is not joined, and write who they are.
4. When all are there rank 0 removes the segment's name and only then takes its
   memory: nothing but empty files can be left behind, even by kill -9.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import Callable

from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, PeerLost, Stalled, code_of, error_of
from npu_shim.distributed.shm import rank_lock as locks, segment as seg
from npu_shim.distributed.shm.job_directory import lock_path, segment_path, unlink
from npu_shim.distributed.shm.rank_lock import RankLock
from npu_shim.distributed.shm.segment import Layout, Segment, fence

_LONGEST_PAUSE_S = 0.02
_SHARE_OF_FREE = 4  # at most a quarter of what is free
_SEGMENT_BYTES, _SMALLEST_CHUNK, _LARGEST_CHUNK = 64 << 20, 64 << 10, 2 << 20


class Clock:
    """The time that the ranks have to come; ``describe`` says who has not."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._began = time.monotonic()
        self._pause = 0.0005

    def tick(self, describe: Callable[[], str]) -> None:
        """One pause of the wait.

        Raises:
            Stalled: the time is over.
        """
        if time.monotonic() - self._began > self.timeout_s:
            raise Stalled(f"{describe()} within {self.timeout_s:g} s.")
        time.sleep(self._pause)
        self._pause = min(self._pause * 1.3, _LONGEST_PAUSE_S)


def open_world(folder: str, lock: RankLock, size: int, chunk_bytes: int | None, clock: Clock) -> Segment:
    """Rank 0: makes the world's segment and waits until all have come."""
    name = secrets.token_hex(8)
    path = segment_path(folder, name)
    world = Segment.create(path, Layout(size, chunk_bytes or chunk_for(size, folder)))
    try:
        _sit_down(world, 0, lock.life)
        lock.publish(name)
        _roll_call(world, path, clock, lambda: _died_early(folder, world), list(range(size)))
    finally:
        unlink(path)
    return world


def join_world(folder: str, lock: RankLock, rank: int, size: int, clock: Clock) -> Segment:
    """Any other rank: joins rank 0's segment."""
    while True:
        found = locks.holder(lock_path(folder, 0))
        world = _segment_of(folder, found, rank, size)
        if world is not None:
            break
        old = f" (process {found.pid} is rank 0 of an earlier run that has not ended: end it)" if found else ""
        clock.tick(lambda: f"rank 0 did not come{old}")
    _sit_down(world, rank, lock.life)
    chief = world.words[world.page(0) + seg.LIFE]

    def lost() -> str | None:
        now = locks.holder(lock_path(folder, 0))
        return None if now is not None and now.life == chief else "rank 0 died before all ranks had come"

    await_ready(world, clock, lost, list(range(size)))
    return world


def _segment_of(folder: str, chief: locks.Holder | None, rank: int, size: int) -> Segment | None:
    if chief is None or chief.published is None:
        return None
    try:
        world = Segment.open(segment_path(folder, chief.published))
    except FileNotFoundError:
        return None
    if world.layout.size != size:
        text = (
            f"rank 0 (process {chief.pid}) was started for {world.layout.size} ranks, rank {rank} (process "
            f"{os.getpid()}) for {size}: give every rank the same RANK_SIZE and rank table."
        )
        error = Mismatch(text)
        refuse(world, error)
        raise error
    # Rank 0's own word is set last before it publishes; a place that is taken is of an earlier run.
    return None if world.words[world.page(rank) + seg.LIFE] else world


def refuse(segment: Segment, error: CollectiveError) -> None:
    """Tells the rank that sets this segment up that it will not be complete, and why."""
    segment.write_text(seg.REFUSAL_TEXT, str(error))
    fence()
    segment.words[seg.REFUSED] = code_of(error)


def _sit_down(segment: Segment, rank: int, life: int) -> None:
    page = segment.page(rank)
    segment.words[page + seg.PID] = os.getpid()
    fence()
    segment.words[page + seg.LIFE] = life


def open_group(
    path: str, members: list[int], place: int, life: int, clock: Clock, lost: Callable[[], str | None], chunk_bytes: int
) -> Segment:
    """A group's segment: its first member makes it, the others map it.

    Args:
        path: of the segment; every member derives the same.
        members: world ranks.
        place: this rank's number in the group.
        life: this process's random number.
        lost: says which member is gone, None while all live.
        chunk_bytes: size of a slot.
    """
    if place == 0:
        group = Segment.create(path + ".new", Layout(len(members), chunk_bytes))
        try:
            _sit_down(group, 0, life)
            os.rename(path + ".new", path)
            _roll_call(group, path, clock, lost, members)
        finally:
            unlink(path)
        return group
    while True:
        try:
            group = Segment.open(path)
            break
        except FileNotFoundError:
            text = lost()
            if text:
                raise PeerLost(text)
            clock.tick(lambda: f"rank {members[0]} did not make the group of ranks {members}")
    _sit_down(group, place, life)
    await_ready(group, clock, lost, members)
    return group


def _roll_call(segment: Segment, path: str, clock: Clock, lost: Callable[[], str | None], members: list[int]) -> None:
    try:
        while True:
            missing, text = absent(segment), lost()
            if segment.words[seg.REFUSED]:  # read last: who refuses says so before it ends
                fence()
                raise error_of(segment.words[seg.REFUSED], segment.read_text(seg.REFUSAL_TEXT))
            if not missing:
                break
            if text:
                raise PeerLost(text)
            clock.tick(lambda: f"{ranks([members[place] for place in absent(segment)])} did not come")
        unlink(path)
        segment.reserve()
    except CollectiveError as error:
        segment.write_text(seg.REFUSAL_TEXT, str(error))
        fence()
        segment.words[seg.STATE] = seg.FAILED + code_of(error)
        raise
    fence()
    segment.words[seg.STATE] = seg.READY


def await_ready(segment: Segment, clock: Clock, lost: Callable[[], str | None], members: list[int]) -> None:
    """Waits until the rank that sets the segment up says that all have come."""
    try:
        while segment.words[seg.STATE] == seg.SETTING_UP:
            text = lost()
            if text and segment.words[seg.STATE] == seg.SETTING_UP:
                raise PeerLost(text)
            clock.tick(lambda: f"{ranks([members[place] for place in absent(segment)]) or 'the set-up'} did not come")
    except CollectiveError as error:
        refuse(segment, error)
        raise
    fence()
    state = segment.words[seg.STATE]
    if state != seg.READY:
        raise error_of(state - seg.FAILED, segment.read_text(seg.REFUSAL_TEXT))


def absent(segment: Segment) -> list[int]:
    """The places of a segment that nobody has taken yet."""
    return [place for place in range(segment.layout.size) if not segment.words[segment.page(place) + seg.LIFE]]


def ranks(numbers: list[int]) -> str:
    """'rank 3' or 'ranks 1, 3'."""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}" if numbers else ""


def chunk_for(size: int, folder: str) -> int:
    """Bytes of a slot: large enough to make the meetings cheap, small enough for the caches and the memory there is."""
    status = os.statvfs(folder)
    room = min(_SEGMENT_BYTES, status.f_bavail * status.f_frsize // _SHARE_OF_FREE)
    chunk = max(_SMALLEST_CHUNK, min(_LARGEST_CHUNK, room // (2 * size)))
    return chunk // seg.PAGE * seg.PAGE


def _died_early(folder: str, world: Segment) -> str | None:
    for rank in range(1, world.layout.size):
        life = world.words[world.page(rank) + seg.LIFE]
        if life:
            now = locks.holder(lock_path(folder, rank))
            if now is None or now.life != life:
                process = world.words[world.page(rank) + seg.PID]
                return f"rank {rank} (process {process}) died before all ranks had come"
    return None
