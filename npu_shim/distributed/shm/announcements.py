"""The announcements of a group: the collectives that each rank is ready to run, visible to the others.

An announcement is a token in the rank's table (from the collective's key and the
number of its uses) and a record with the request. Ranks fill their tables in
different orders, so tokens are found by value.
"""

from __future__ import annotations

import struct
import threading
import time

from npu_shim.distributed.collectives.errors import mismatch_text, stall_text
from npu_shim.distributed.collectives.op_key import DIGEST_BYTES
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.segment import ENTRIES, RECORD_BYTES, TOKENS, WORD, Segment, fence

_KEY_BYTES = 200  # bytes of a record for the key; the rest is for the request


class PendingCollective:
    """A collective that a thread of this rank wants to run."""

    def __init__(self, token: int, key: str, request: str, digest: bytes, entry: int) -> None:
        self.token, self.key, self.request, self.digest, self.entry = token, key, request, digest, entry
        self.packed_token = struct.pack("<Q", token)
        self.since = time.monotonic()
        self.is_scheduled = self.is_offered = False
        self.sleeping = threading.Lock()  # held while the thread sleeps
        self.sleeping.acquire()


class Announcements:
    """The announcements of a group's ranks; ``rank`` is the rank of this process in the group."""

    def __init__(self, segment: Segment, rank: int, peers: Peers) -> None:
        self._segment, self._rank, self._peers = segment, rank, peers
        self._others = [other for other in range(segment.layout.size) if other != rank]
        self._own_tokens = segment.first_word_of_page(rank) + TOKENS

    def announce(self, pending: PendingCollective) -> None:
        """Show the other ranks that a thread of this rank is ready."""
        segment, at = self._segment, self._segment.record_offset(self._rank, pending.entry)
        segment.memory[at : at + DIGEST_BYTES] = pending.digest
        segment.write_text(at + DIGEST_BYTES, pending.key, _KEY_BYTES)
        segment.write_text(at + DIGEST_BYTES + _KEY_BYTES, pending.request, RECORD_BYTES - DIGEST_BYTES - _KEY_BYTES)
        fence()
        segment.words[self._own_tokens + pending.entry] = pending.token

    def withdraw(self, pending: PendingCollective) -> None:
        """Remove an announcement of this rank."""
        self._segment.words[self._own_tokens + pending.entry] = 0

    def find_entries_of_all(self, pending: PendingCollective) -> list[int] | None:
        """Return the table entry of each other rank for a collective; None while one has not announced it."""
        entries = []
        for other in self._others:
            entry = self.find_entry(other, pending.packed_token)
            if entry < 0:
                return None
            entries.append(entry)
        fence()
        return entries

    def find_entry(self, other: int, packed_token: bytes) -> int:
        """Return the table entry in which another rank announced a token; -1 if it has not."""
        begin = self._segment.tokens_offset(other)
        at = begin - 1
        while True:
            at = self._segment.memory.find(packed_token, at + 1, begin + ENTRIES * WORD)
            if at < 0 or (at - begin) % WORD == 0:
                return -1 if at < 0 else (at - begin) // WORD

    def find_mismatched_request(self, pending: PendingCollective, entries: list[int]) -> tuple[str, str] | None:
        """Return name and request of the first rank whose request differs; None if all ranks agree."""
        memory = self._segment.memory
        for other, entry in zip(self._others, entries):
            at = self._segment.record_offset(other, entry)
            if memory[at : at + DIGEST_BYTES] != pending.digest:
                return self._peers.name(other), self._segment.read_text(at + DIGEST_BYTES + _KEY_BYTES)
        return None

    def mismatch(self, pending: PendingCollective, different: tuple[str, str] | None) -> str:
        """Return the message for requests that differ; empty if all ranks agree."""
        own = self._peers.name(self._rank), pending.request
        return "" if different is None else mismatch_text(pending.key, own, different)

    def stall_message(self, pending: PendingCollective, waited_s: float) -> str:
        """Return the message for a collective that timed out."""
        present, missing = self.announced_and_missing_ranks(pending.packed_token)
        return stall_text(f"{pending.key} ({pending.request})", waited_s, present, missing, self._peers.name(0))

    def announced_and_missing_ranks(self, packed_token: bytes) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
        """Return the ranks that announced a token, and the others.

        Returns:
            The names of the first; the name, line of the script and keys of each other rank.
        """
        ranks = range(self._segment.layout.size)
        missing = [rank for rank in ranks if self.find_entry(rank, packed_token) < 0]
        return [self._peers.name(rank) for rank in ranks if rank not in missing], [
            (self._peers.name(rank), place, self.keys_of(rank))
            for rank, place in zip(missing, self._peers.places(missing))
        ]

    def keys_of(self, other: int) -> list[str]:
        """Return the keys that another rank has announced."""
        tokens = self._segment.first_word_of_page(other) + TOKENS
        return [
            self._segment.read_text(self._segment.record_offset(other, entry) + DIGEST_BYTES)
            for entry in range(ENTRIES)
            if self._segment.words[tokens + entry]
        ]
