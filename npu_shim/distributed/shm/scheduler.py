"""The scheduler of a group: one collective at a time, in an order that all ranks share.

The threads of a rank announce their collectives in any order (announcements.py).
The first rank of the group finds a collective that every rank has announced,
compares the requests, and gives it the next *sequence number*. Each rank then runs
that collective on the thread that announced it; the next sequence number follows.

Of the waiting threads of a process, one polls the memory for all of them, and the
thread of the scheduled collective does the work. The others sleep.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import Callable, TypeVar

from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, PeerLost, Stalled
from npu_shim.distributed.collectives.op_key import collective_name, token_of_use
from npu_shim.distributed.collectives.transport import GroupBackend, Transport
from npu_shim.distributed.shm import segment as layout
from npu_shim.distributed.shm.announcements import Announcements, PendingCollective
from npu_shim.distributed.shm.barrier import Barrier, wait_until
from npu_shim.distributed.shm.host_order import HostOrder
from npu_shim.distributed.shm.liveness import Peers, mark_failed
from npu_shim.distributed.shm.segment import Segment, fence

T = TypeVar("T")
_SPINS = 300


class Scheduler(GroupBackend):
    """The collectives of one group as one of its ranks sees them.

    Args:
        segment: of the group.
        rank: of this process in the segment.
        peers: the ranks of the group on this host.
        barrier: of the group.
        transport: carries the data of a collective.
        timeout_s: how long a collective waits for a live rank.
        order: orders the collectives among hosts, on the first rank of each; None on the others, and for one host.
        spins: how long a thread waits without sleeping, see wait_until().
    """

    def __init__(
        self,
        segment: Segment,
        rank: int,
        peers: Peers,
        barrier: Barrier,
        transport: Transport,
        timeout_s: float,
        order: HostOrder | None = None,
        spins: int = _SPINS,
    ) -> None:
        self._order, self._spins = order, spins
        self._segment, self._rank, self._peers, self._barrier = segment, rank, peers, barrier
        self._transport, self._timeout_s = transport, timeout_s
        self._words = segment.words
        self.announcements = Announcements(segment, rank, peers)
        self._lock = threading.Lock()
        self._pending: OrderedDict[int, PendingCollective] = OrderedDict()
        self._counts: dict[str, int] = {}
        self._free = list(range(layout.ENTRIES))
        self._freed = threading.Condition(self._lock)
        self._polling = False  # one thread polls the memory, or runs its collective
        self._sequence = 0
        self._pid = os.getpid()
        self._scheduled: PendingCollective | None = None
        self._failure: CollectiveError | None = None

    def run(self, key: str, request: str, digest: bytes, work: Callable[[Transport], T]) -> T:
        pending = self._announce(key, request, digest)
        try:
            self._await_schedule(pending)
            self._raise_mismatch()
            passes = self._barrier.passes
            result = work(self._transport)
            self._transport.finish()
            if self._barrier.passes == passes:  # every rank must see this sequence number before the next one
                self._barrier.wait()
            return result
        except Mismatch:
            raise
        except BaseException as error:
            self._fail_group(error, pending)
            raise
        finally:
            self._release_entry(pending)

    # ---- announcing

    def _announce(self, key: str, request: str, digest: bytes) -> PendingCollective:
        if os.getpid() != self._pid:
            raise CollectiveError(
                f"{key}: this process was forked from a rank. Run collectives in the rank's own process."
            )
        with self._lock:
            self._raise_failure()
            name = collective_name(key)
            count = self._counts.get(name, 0)
            self._counts[name] = count + 1
            while not self._free:
                if not self._freed.wait(self._timeout_s):
                    raise Stalled(f"{key}: all {layout.ENTRIES} announcements of this rank wait for other ranks.")
                self._raise_failure()
            pending = PendingCollective(token_of_use(key, count), key, request, digest, self._free.pop())
            self._pending[pending.token] = pending
        self.announcements.announce(pending)
        return pending

    def _release_entry(self, pending: PendingCollective) -> None:
        self.announcements.withdraw(pending)
        with self._lock:
            del self._pending[pending.token]
            self._free.append(pending.entry)
            self._freed.notify()
            if pending.is_scheduled or self._failure:
                self._wake_next()

    def _wake_next(self) -> None:
        """Make the longest waiting thread the one that polls; wake every thread after a failure."""
        if self._failure:
            for pending in self._pending.values():
                _wake_thread(pending)
        elif self._pending:
            _wake_thread(self._oldest_pending())
        else:
            self._polling = False

    # ---- waiting for the schedule

    def _await_schedule(self, pending: PendingCollective) -> None:
        with self._lock:
            polls, self._polling = not self._polling, True
        while True:
            if not polls:
                pending.sleeping.acquire()
                self._raise_failure()
            if pending.is_scheduled:
                return
            self._scheduled = None
            wait_until(self._poll_is_scheduled, self._raise_for_failure_or_stall, self._spins)
            scheduled = self._scheduled
            assert scheduled is not None
            scheduled.is_scheduled = True
            if scheduled is pending:
                return
            _wake_thread(scheduled)
            polls = False

    def _poll_is_scheduled(self) -> bool:
        """Return True if a collective is scheduled; on the first rank of the group, schedule one."""
        words = self._words
        if words[layout.SCHEDULED_NUMBER] == self._sequence:
            if self._rank or not self._schedule_next():
                return False
        fence()
        self._scheduled = self._pending.get(words[layout.SCHEDULED_TOKEN])
        if self._scheduled is None:
            raise CollectiveError(
                "the shared memory is damaged: a collective is scheduled that this rank did not announce."
            )
        self._sequence += 1
        return True

    def _schedule_next(self) -> bool:
        """Give the next sequence number to a collective that every rank has announced."""
        for pending in list(self._pending.values()):
            if self._order is not None and pending.is_offered:
                continue
            entries = self.announcements.find_entries_of_all(pending)
            if entries is not None:
                different = self.announcements.find_mismatched_request(pending, entries)
                if self._order is None:
                    self._publish_schedule(pending.token, self.announcements.mismatch(pending, different))
                    return True
                pending.is_offered = True
                self._order.offer(pending, different)
        chosen = self._order.next_token_and_mismatch() if self._order is not None else None
        if chosen is not None:
            self._publish_schedule(*chosen)
        return chosen is not None

    def _publish_schedule(self, token: int, mismatch: str) -> None:
        if mismatch:
            self._segment.write_text(layout.MISMATCH_TEXT, mismatch, layout.PAGE - layout.MISMATCH_TEXT)
        self._words[layout.SCHEDULED_IS_MISMATCH] = bool(mismatch)
        self._words[layout.SCHEDULED_TOKEN] = token
        fence()
        self._words[layout.SCHEDULED_NUMBER] = self._sequence + 1

    def _raise_mismatch(self) -> None:
        if self._words[layout.SCHEDULED_IS_MISMATCH]:
            text = self._segment.read_text(layout.MISMATCH_TEXT)
            self._barrier.wait()  # every rank has read it
            raise Mismatch(text)

    # ---- failures

    def _raise_for_failure_or_stall(self, waited_s: float) -> None:
        self._raise_failure()
        pending = self._oldest_pending()
        error = self._peers.find_failure(self._segment)
        if error is None:
            lost = self._peers.find_lost()
            if lost is None and self._order is not None:
                error = self._order.find_failure()
                lost = self._order.find_lost()
            if error is None and lost:
                error = PeerLost(f"{pending.key} ({pending.request}) cannot complete: {lost}.")
            elif error is None and time.monotonic() - pending.since > self._timeout_s:
                error = Stalled((self._order or self.announcements).stall_message(pending, self._timeout_s))
        if error is not None and self._words[layout.SCHEDULED_NUMBER] == self._sequence:  # else it was scheduled before
            raise error

    def _oldest_pending(self) -> PendingCollective:
        return next(iter(list(self._pending.values())))

    def _raise_failure(self) -> None:
        if self._failure:
            raise type(self._failure)(str(self._failure))

    def _fail_group(self, error: BaseException, pending: PendingCollective) -> None:
        """Stop the group on this rank, and show the other ranks why."""
        if not isinstance(error, CollectiveError):
            error = CollectiveError(
                f"{pending.key} ({pending.request}): {self._peers.name(self._rank)} failed: "
                f"{type(error).__name__}: {error}"
            )
        with self._lock:
            if self._failure:
                return
            self._failure = error
        mark_failed(self._segment, self._rank, error)
        if self._order is not None:
            self._order.fail(error)


def _wake_thread(pending: PendingCollective) -> None:
    if pending.sleeping.locked():
        pending.sleeping.release()
