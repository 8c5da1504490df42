"""Takes in this rank's letters, keeps them until they are asked for, and sends those to others."""

from __future__ import annotations

import json
import secrets
import struct
import threading
from collections import defaultdict
from typing import Any, Callable, NamedTuple, Sequence, cast

import numpy as np

from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, error_code, error_from_code
from npu_shim.distributed.servers import letters, peers as peers_module
from npu_shim.distributed.servers.letters import Letter
from npu_shim.distributed.servers.outbox import Outbox
from npu_shim.distributed.servers.peers import Peer, Peers
from npu_shim.distributed.servers.post import Post, close_in_children

MEETING = 0  # in the place of a group's number
_RETRIES, _LOOK_AGAIN_S = 3, 0.25
_NOTHING = np.empty(0, np.uint8)


class Announcement(NamedTuple):
    """The announcement that a rank is in a collective: its key, its request, and its numbers if they are few."""

    digest: bytes
    key: str
    asked: str
    payload: np.ndarray


class Arrivals:
    """The letters that have arrived for one collective."""

    def __init__(self, lock: threading.Lock) -> None:
        self.changed = threading.Condition(lock)
        self.announced: dict[int, Announcement] = {}
        self.parts: dict[tuple[int, int], np.ndarray] = {}


class Office:
    """The letters of this rank.

    Args:
        rank: this one.
        addresses: 'host:port' of each.
        job: what tells this job from others.
        where: returns the line of the script that this process is at, for the ranks that wait for it.
    """

    def __init__(self, rank: int, addresses: Sequence[str], job: str, where: Callable[[], str] | None = None) -> None:
        self.rank, self.job, self._where = rank, job, where
        self._places: dict[int, str] = {}
        self._answered = threading.Condition()
        self.peers = Peers(rank, addresses, secrets.randbits(63) or 1)
        self._post = Post(rank, addresses)
        close_in_children(int(addresses[rank].rpartition(":")[2]))
        self._outboxes = {peer.rank: self._outbox(peer) for peer in self.peers.others}
        self.lock = threading.Lock()
        self._calls: dict[int, dict[int, Arrivals]] = defaultdict(dict)
        self._errors: dict[int, CollectiveError] = {}
        self._deaf: CollectiveError | None = None  # why no letters are taken in any more
        self.refusal: CollectiveError | None = None  # why the ranks cannot meet
        self.greeted = threading.Condition(self.lock)
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._take_in, name="npu_shim letters", daemon=True)
        self._thread.start()

    # ---- sending

    def send(
        self, dest: int, kind: int, body: np.ndarray = _NOTHING, group: int = 0, call: int = 0, part: int = 0
    ) -> Callable[[float], bool]:
        """Sends a letter some time.

        Returns:
            A function that says whether it was sent, after waiting at most some seconds for it. The body must not
            change before.
        """
        mine, peer = self.peers.me, self.peers.all[dest]
        if peer.gone is not None:
            return lambda timeout_s: True
        outbox = self._outboxes[dest]
        number = outbox.post(Letter(kind, self.rank, mine.life, peer.life, group, call, part, body))
        return lambda timeout_s: outbox.sent(number, timeout_s)

    def greet(self, peer: Peer) -> None:
        """Send this rank's identity to another rank."""
        peer.greeted = peer.life
        self.send(
            peer.rank,
            letters.HELLO,
            letters.of_text(
                json.dumps({"job": self.job, "size": len(self.peers.all), "process": self.peers.me.process})
            ),
        )

    def tell_broken(self, group: int, members: Sequence[int], error: CollectiveError) -> None:
        """Breaks a group, here and for its other members."""
        with self.lock:
            if group in self._errors:
                return
            self._errors[group] = error
            self._wake(group)
        for rank in members:
            if rank != self.rank:
                self.send(rank, letters.BROKEN, letters.of_text(str(error)), group, part=error_code(error))

    def leave(self, how: str, timeout_s: float) -> None:
        """Announce the exit of this rank to all, and stop receiving. Hosts that do not answer are not waited for."""
        self._leaving.set()
        sent = [self.send(peer.rank, letters.LEFT, letters.of_text(how)) for peer in self.peers.others]
        for each in sent:
            each(timeout_s)
        self._post.put(self.rank, *letters.pack([Letter(letters.WAKE, self.rank, 0, 0, 0, 0, 0, _NOTHING)]))
        self._thread.join(timeout_s)

    def _outbox(self, peer: Peer) -> Outbox:
        return Outbox(
            lambda head, outside: self._post.put(peer.rank, head, outside),
            lambda error, tries: self._failed(peer, error, tries),
        )

    def _failed(self, peer: Peer, error: Exception, tries: int) -> bool:
        """Return True if a message is sent again. It may then arrive twice, which has no effect."""
        self._post.forget(peer.rank)
        if self._answers(peer):
            if tries <= _RETRIES:
                return True
            if peer.knows_me:
                peer.gone = f"does not accept messages ({getattr(error, 'message', error)})"
        return False

    def _answers(self, peer: Peer) -> bool:
        """Return True if a process listens at the address of a rank; wait while the host of a known rank is silent."""
        while peer.gone is None:
            state = peers_module.probe(peer.address)
            if state != peers_module.SILENT or not peer.knows_me or self._leaving.wait(_LOOK_AGAIN_S):
                return state == peers_module.UP
        return False

    # ---- what has come

    def arrivals(self, group: int, call: int) -> Arrivals:
        """Return the letters that have arrived for a collective. Hold the lock."""
        calls = self._calls[group]
        found = calls.get(call)
        if found is None:
            found = calls[call] = Arrivals(self.lock)
        return found

    def forget(self, group: int, call: int) -> None:
        """Drops what came for a collective that is over."""
        with self.lock:
            self._calls[group].pop(call, None)

    def check(self, group: int) -> None:
        """Raises the error with which a member left a collective of a group, or why this rank hears of none."""
        error = self._errors.get(group) or self._deaf
        if error is not None:
            raise type(error)(str(error))

    def is_broken(self, group: int) -> bool:
        """Return True if check() would raise."""
        return group in self._errors or self._deaf is not None

    def awaited(self, group: int, rank: int) -> list[str]:
        """Return the keys that a rank has announced in a group and this rank has not finished. Hold the lock."""
        return [found.announced[rank].key for found in self._calls[group].values() if rank in found.announced]

    def places(self, ranks: Sequence[int], timeout_s: float) -> list[str]:
        """Return where ranks are in their scripts: ``at train.py:42 in load``; empty for one that answers not."""
        with self._answered:
            for rank in ranks:
                self._places.pop(rank, None)
                self.send(rank, letters.ASK)
            self._answered.wait_for(lambda: all(rank in self._places for rank in ranks), timeout_s)
            return [self._places.get(rank, "") for rank in ranks]

    def _take_in(self) -> None:
        tries = 0
        while True:
            try:
                if tries:
                    self._post.listen()
                message = self._post.get()
            except (
                Exception
            ) as error:  # of TensorFlow, which now and then gives up a step that waits, on a busy machine
                tries += 1
                if tries > _RETRIES:
                    self._hear_no_more(error)
                    return
                continue
            tries = 0
            for letter in letters.unpack(*message):
                if letter.kind == letters.WAKE:
                    return
                with self.lock:
                    self._deliver(letter)

    def _hear_no_more(self, error: Exception) -> None:
        how = (
            "cannot receive messages, because its server failed "
            f"({type(error).__name__}: {getattr(error, 'message', error)})"
        )
        with self.lock:
            self._deaf = CollectiveError(f"{self.peers.me.name} {how}.")
            self.refusal = self.refusal or self._deaf
            self.greeted.notify_all()
            for group in list(self._calls):
                self._wake(group)
        for peer in self.peers.others:
            self.send(peer.rank, letters.LEFT, letters.of_text(how))

    def _deliver(self, letter: Letter) -> None:
        if letter.kind == letters.HELLO:
            self._hello(letter)
            return
        peer = self.peers.all[letter.sender]
        if letter.life != peer.life or letter.to_life != self.peers.me.life:
            return  # of an earlier run, or for one
        if letter.kind == letters.ANNOUNCE:
            found = self.arrivals(letter.group, letter.call)
            found.announced[letter.sender] = announcement(letter.body)
            found.changed.notify_all()
        elif letter.kind == letters.PART:
            found = self.arrivals(letter.group, letter.call)
            found.parts[letter.sender, letter.part] = letter.body
            found.changed.notify_all()
        elif letter.kind == letters.BROKEN:
            error = error_from_code(letter.part, letters.text_of(letter.body))
            if letter.group == MEETING:
                self.refusal = self.refusal or error
                self.greeted.notify_all()
            self._errors.setdefault(letter.group, error)
            self._wake(letter.group)
        elif letter.kind == letters.ASK:
            self.send(letter.sender, letters.ANSWER, letters.of_text(self._where() if self._where else ""))
        elif letter.kind == letters.ANSWER:
            with self._answered:
                self._places[letter.sender] = letters.text_of(letter.body)
                self._answered.notify_all()
        elif letter.kind == letters.LEFT:
            peer.gone = letters.text_of(letter.body)
            for group in list(self._calls):
                self._wake(group)

    def _wake(self, group: int) -> None:
        for found in self._calls[group].values():
            found.changed.notify_all()

    def _hello(self, letter: Letter) -> None:
        identity = json.loads(letters.text_of(letter.body))
        error = self._unfit(letter.sender, identity)
        if error is not None:
            self.refusal = self.refusal or error
        if letter.sender >= len(self.peers.all):
            self.greeted.notify_all()
            return
        peer = self.peers.all[letter.sender]
        if peer.life and peer.life != letter.life:
            peer.gone = peer.gone or "died"  # another process has taken its place
        else:
            peer.life, peer.process = letter.life, identity["process"]
            peer.knows_me = peer.knows_me or letter.to_life == self.peers.me.life
            if letter.to_life != self.peers.me.life or peer.greeted != letter.life:
                self.greet(peer)
        self.greeted.notify_all()

    def _unfit(self, sender: int, identity: dict[str, Any]) -> CollectiveError | None:
        """Why a rank is none of this job."""
        sides = sorted(
            [
                (self.rank, self.peers.me.process, self.job, len(self.peers.all)),
                (sender, identity["process"], identity["job"], identity["size"]),
            ]
        )
        (first, first_process, first_job, first_size), (other, other_process, other_job, other_size) = sides
        if first_job != other_job:
            return Mismatch(
                f"rank {first} (process {first_process}) belongs to job {first_job!r}, rank {other} (process "
                f"{other_process}) to job {other_job!r}. Give every rank the same JOB_ID, and each job ports "
                "of its own (HCCL_IF_BASE_PORT)."
            )
        if first_size != other_size:
            return Mismatch(
                f"rank {first} (process {first_process}) was started for {first_size} ranks, rank {other} "
                f"(process {other_process}) for {other_size}. Give every rank the same RANK_SIZE and rank table."
            )
        return None


_LENGTHS = struct.Struct("<16sII")


def announcement(body: np.ndarray) -> Announcement:
    """The announcement in the body of a letter."""
    digest, key, asked = _LENGTHS.unpack_from(cast(Any, body))
    begin = _LENGTHS.size
    end = begin + key
    return Announcement(
        digest, letters.text_of(body[begin:end]), letters.text_of(body[end : end + asked]), body[end + asked :]
    )


def announced(made: Announcement) -> np.ndarray:
    """It as the body of a letter."""
    key, asked = made.key.encode("utf-8"), made.asked.encode("utf-8")
    head = _LENGTHS.pack(made.digest, len(key), len(asked)) + key + asked
    return np.concatenate([np.frombuffer(head, np.uint8), made.payload])
