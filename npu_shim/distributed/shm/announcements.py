"""What each rank has announced that it wants to take part in, for the others to see.

An announcement is a token in one of the rank's lanes, made of the collective's
key and of how often the key was used, and a record: what is asked for. Tokens are
looked for by value, as ranks use their lanes in different orders.
"""

from __future__ import annotations

import struct
import threading
import time

from npu_shim.distributed.collectives.op_key import DIGEST_BYTES
from npu_shim.distributed.collectives.reports import difference, stall
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.segment import LANES, RECORD_BYTES, TOKENS, WORD, Segment, fence

_KEY_ROOM = 200  # bytes of a record for the key; the rest is for what is asked


class Call:
    """A thread's wish to take part in a collective."""

    def __init__(self, token: int, key: str, asked: str, digest: bytes, lane: int) -> None:
        self.token, self.key, self.asked, self.digest, self.lane = token, key, asked, digest, lane
        self.packed = struct.pack("<Q", token)
        self.since = time.monotonic()
        self.has_turn = False
        self.wake = threading.Lock()  # taken = sleep
        self.wake.acquire()


class Lanes:
    """The announcements of a group's ranks; ``place`` is this one's number."""

    def __init__(self, segment: Segment, place: int, peers: Peers) -> None:
        self._segment, self._place, self._peers = segment, place, peers
        self._others = [other for other in range(segment.layout.size) if other != place]
        self._mine = segment.page(place) + TOKENS

    def announce(self, call: Call) -> None:
        """Shows the others what a thread of this rank wants."""
        segment, at = self._segment, self._segment.record_at(self._place, call.lane)
        segment.memory[at : at + DIGEST_BYTES] = call.digest
        segment.write_text(at + DIGEST_BYTES, call.key, _KEY_ROOM)
        segment.write_text(at + DIGEST_BYTES + _KEY_ROOM, call.asked, RECORD_BYTES - DIGEST_BYTES - _KEY_ROOM)
        fence()
        segment.words[self._mine + call.lane] = call.token

    def withdraw(self, call: Call) -> None:
        """Takes it back."""
        self._segment.words[self._mine + call.lane] = 0

    def lanes_of(self, call: Call) -> list[int] | None:
        """In which lane each other rank announced it; None while one has not."""
        lanes = []
        for other in self._others:
            lane = self.lane_of(other, call.packed)
            if lane < 0:
                return None
            lanes.append(lane)
        fence()
        return lanes

    def lane_of(self, other: int, packed: bytes) -> int:
        """In which lane another rank announced a token; -1 when it has not."""
        begin = self._segment.tokens_at(other)
        at = begin - 1
        while True:
            at = self._segment.memory.find(packed, at + 1, begin + LANES * WORD)
            if at < 0 or (at - begin) % WORD == 0:
                return -1 if at < 0 else (at - begin) // WORD

    def difference(self, call: Call, lanes: list[int]) -> str:
        """What the ranks ask differently; empty when they agree."""
        memory = self._segment.memory
        for other, lane in zip(self._others, lanes):
            at = self._segment.record_at(other, lane)
            if memory[at : at + DIGEST_BYTES] != call.digest:
                theirs = self._segment.read_text(at + DIGEST_BYTES + _KEY_ROOM)
                return difference(
                    call.key, (self._peers.name(self._place), call.asked), (self._peers.name(other), theirs)
                )
        return ""

    def report(self, call: Call, waited_s: float) -> str:
        """Who waits for which collective, and who has not come."""
        absent = [other for other in self._others if self.lane_of(other, call.packed) < 0]
        here = sorted({self._place, *self._others} - set(absent))
        return stall(
            f"{call.key} ({call.asked})",
            waited_s,
            [self._peers.name(place) for place in here],
            [(self._peers.name(place), self._keys_of(place)) for place in absent],
            self._peers.name(0),
        )

    def _keys_of(self, other: int) -> list[str]:
        tokens = self._segment.page(other) + TOKENS
        return [
            self._segment.read_text(self._segment.record_at(other, lane) + DIGEST_BYTES)
            for lane in range(LANES)
            if self._segment.words[tokens + lane]
        ]
