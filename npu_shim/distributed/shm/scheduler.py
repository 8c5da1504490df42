"""One collective of a group at a time, in an order that all its ranks share.

A rank's threads come in any order, and each announces what it wants (lanes.py).
The group's first rank looks for a collective that every rank has announced,
compares what they ask for, and gives it the next *go number*. On each rank the
thread with that collective then has its turn; the next go number is given after it.

Of the threads of a process that wait, one looks at the memory for all of them,
and the one whose turn it is does the work; the others sleep.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import Callable, TypeVar

from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, PeerLost, Stalled
from npu_shim.distributed.collectives.op_key import name_of, token_of
from npu_shim.distributed.shm import segment as seg
from npu_shim.distributed.shm.announcements import Call, Lanes
from npu_shim.distributed.shm.barrier import Floor
from npu_shim.distributed.shm.liveness import Peers, break_group
from npu_shim.distributed.shm.segment import LANES, Segment, fence
from npu_shim.distributed.shm.waiting import wait_until

T = TypeVar("T")
_SPINS = 300


class Turns:
    """The collectives of one group as one of its ranks sees them."""

    def __init__(self, segment: Segment, place: int, peers: Peers, floor: Floor, timeout_s: float) -> None:
        self._segment, self._place, self._peers, self._floor = segment, place, peers, floor
        self._timeout_s = timeout_s
        self._words = segment.words
        self._lanes = Lanes(segment, place, peers)
        self._lock = threading.Lock()
        self._calls: OrderedDict[int, Call] = OrderedDict()
        self._counts: dict[str, int] = {}
        self._free = list(range(LANES))
        self._freed = threading.Condition(self._lock)
        self._looking = False  # one thread looks at the memory, or has its turn
        self._go = 0
        self._pid = os.getpid()
        self._winner: Call | None = None
        self._broken: CollectiveError | None = None

    def run(self, key: str, asked: str, digest: bytes, work: Callable[[], T]) -> T:
        """Takes part in a collective.

        Args:
            key: its name, the same on every rank; the n-th use of a key here meets the n-th of every other rank.
            asked: what this rank asks for, for messages.
            digest: of asked; it has to be the same on every rank.
            work: moves the data when it is this collective's turn.
        Returns:
            What work returns.
        Raises:
            Mismatch: the ranks ask for different things; the group goes on.
            PeerLost, Stalled: the group cannot go on; every later call raises as well.
        """
        call = self._announce(key, asked, digest)
        try:
            self._await_turn(call)
            self._raise_difference()
            met = self._floor.meetings
            result = work()
            if self._floor.meetings == met:  # the next go number may only come when all have seen this one
                self._floor.meet()
            return result
        except Mismatch:
            raise
        except BaseException as error:
            self._break(error, call)
            raise
        finally:
            self._leave(call)

    # ---- announcing

    def _announce(self, key: str, asked: str, digest: bytes) -> Call:
        if os.getpid() != self._pid:
            raise CollectiveError(
                f"{key}: this process was forked from a rank and is none itself: communicate in the rank's own process."
            )
        with self._lock:
            self._check_whole()
            name = name_of(key)
            count = self._counts.get(name, 0)
            self._counts[name] = count + 1
            while not self._free:
                if not self._freed.wait(self._timeout_s):
                    raise Stalled(f"{key}: all {LANES} collectives that a rank can wait for at a time wait for others.")
                self._check_whole()
            call = Call(token_of(key, count), key, asked, digest, self._free.pop())
            self._calls[call.token] = call
        self._lanes.announce(call)
        return call

    def _leave(self, call: Call) -> None:
        self._lanes.withdraw(call)
        with self._lock:
            del self._calls[call.token]
            self._free.append(call.lane)
            self._freed.notify()
            if call.has_turn or self._broken:
                self._hand_on()

    def _hand_on(self) -> None:
        """Lets the longest waiting thread look at the memory from now on."""
        if self._broken:
            for call in self._calls.values():
                _wake(call)
        elif self._calls:
            _wake(next(iter(self._calls.values())))
        else:
            self._looking = False

    # ---- waiting for the turn

    def _await_turn(self, call: Call) -> None:
        with self._lock:
            looks, self._looking = not self._looking, True
        while True:
            if not looks:
                call.wake.acquire()
                self._check_whole()
            if call.has_turn:
                return
            self._winner = None
            wait_until(self._see_go, self._check, _SPINS)
            winner = self._winner
            assert winner is not None
            winner.has_turn = True
            if winner is call:
                return
            _wake(winner)
            looks = False

    def _see_go(self) -> bool:
        words = self._words
        if words[seg.GO_NUMBER] == self._go:
            if self._place or not self._give_go():
                return False
        fence()
        self._winner = self._calls.get(words[seg.GO_TOKEN])
        if self._winner is None:
            raise CollectiveError(
                "the shared memory of the ranks is damaged: a collective was begun that this rank did not ask for."
            )
        self._go += 1
        return True

    def _give_go(self) -> bool:
        """The first rank: gives the next go number to a collective that every rank has announced."""
        for call in list(self._calls.values()):
            lanes = self._lanes.lanes_of(call)
            if lanes is not None:
                text = self._lanes.difference(call, lanes)
                if text:
                    self._segment.write_text(seg.GO_TEXT, text, seg.PAGE - seg.GO_TEXT)
                self._words[seg.GO_VERDICT] = bool(text)
                self._words[seg.GO_TOKEN] = call.token
                fence()
                self._words[seg.GO_NUMBER] = self._go + 1
                return True
        return False

    def _raise_difference(self) -> None:
        if self._words[seg.GO_VERDICT]:
            text = self._segment.read_text(seg.GO_TEXT)
            self._floor.meet()  # all have read it
            raise Mismatch(text)

    # ---- when it does not go on

    def _check(self, waited_s: float) -> None:
        self._check_whole()
        call = self._oldest()
        error = self._peers.broken(self._segment)
        if error is None:
            lost = self._peers.lost()
            if lost:
                error = PeerLost(f"{call.key} ({call.asked}) cannot be carried out: {lost}.")
            elif time.monotonic() - call.since > self._timeout_s:
                error = Stalled(self._lanes.report(call, self._timeout_s))
        if error is not None and self._words[seg.GO_NUMBER] == self._go:  # else it came before they were lost
            raise error

    def _oldest(self) -> Call:
        return next(iter(list(self._calls.values())))

    def _check_whole(self) -> None:
        if self._broken:
            raise type(self._broken)(str(self._broken))

    def _break(self, error: BaseException, call: Call) -> None:
        """Ends the group here, and tells the other ranks why."""
        if not isinstance(error, CollectiveError):
            error = CollectiveError(
                f"{call.key} ({call.asked}): {self._peers.name(self._place)} failed: {type(error).__name__}: {error}"
            )
        with self._lock:
            if self._broken:
                return
            self._broken = error
        break_group(self._segment, self._place, error)


def _wake(call: Call) -> None:
    if call.wake.locked():
        call.wake.release()
