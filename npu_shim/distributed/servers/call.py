"""One collective between ranks that send each other letters."""

from __future__ import annotations

import time
from typing import Callable, Sequence

import numpy as np

from npu_shim.distributed.collectives.buffer_list import BufferList
from npu_shim.distributed.collectives.buffer_pool import empty
from npu_shim.distributed.collectives.errors import Mismatch, PeerLost, Stalled, mismatch_text, stall_text, stopped_text
from npu_shim.distributed.collectives.reductions import Combiner
from npu_shim.distributed.collectives.transport import Transport
from npu_shim.distributed.servers import letters
from npu_shim.distributed.servers.office import Announcement, Office, announced

_SMALL_BYTES = 64 << 10  # what all ranks together may put into their announcements
_ASKED_ROOM = 2000
_LOOK_EVERY_S, _LONGEST_LOOK_S, _ANSWER_TIMEOUT_S = 0.25, 1.5, 2.0
_BYTES = np.dtype(np.uint8)


class Call(Transport):
    """A collective that this rank is in.

    Each rank announces it to every other one, few numbers with it. Where there are
    more, they follow in parts when all have announced the same.

    Args:
        office: sends and takes in letters.
        group: number of the group.
        ranks: world ranks of its members.
        token: number of the collective.
        mine: what this rank announces.
        chunk_bytes: largest size of a part.
        timeout_s: how long to wait for ranks that live.
    """

    def __init__(
        self,
        office: Office,
        group: int,
        ranks: Sequence[int],
        token: int,
        mine: Announcement,
        chunk_bytes: int,
        timeout_s: float,
    ) -> None:
        self._office, self._group, self._ranks, self._token, self._mine = office, group, ranks, token, mine
        self._chunk, self._timeout_s = chunk_bytes, timeout_s
        self._place, self._size = ranks.index(office.rank), len(ranks)
        self._others = [place for place in range(self._size) if place != self._place]
        self._what = f"{mine.key} ({mine.asked})"
        self._restart()
        self._agreed = False
        self._given, self._taken = [0] * self._size, [0] * self._size
        self._unsent: list[Callable[[float], bool]] = []
        with office.lock:
            self._arrivals = office.arrivals(group, token)

    # ---- the collectives

    def allreduce(self, source: BufferList, out: BufferList | None, dtype: np.dtype, combine: Combiner) -> None:
        if self._is_small(source.count * dtype.itemsize):
            own = self._view(source, 0, source.count, dtype)
            gathered = [each.view(dtype) for each in self._gather(own)]
            self._combine(gathered, out, 0, source.count, dtype, combine)
            return
        self._gather()
        if self._size == 2:  # each needs the other's numbers, or half of them twice: the same amount, but later
            parts = [(0, source.count)] * 2
        else:
            parts = _split(source.count, self._size)
        for other in self._rotated():
            for begin, end in self._steps(*parts[other], dtype):
                self._send(other, self._view(source, begin, end, dtype))
        for begin, end in self._steps(*parts[self._place], dtype):
            own = self._view(source, begin, end, dtype)
            inputs = [own if place == self._place else self._receive(place).view(dtype) for place in range(self._size)]
            result = self._combine(inputs, out, begin, end, dtype, combine)
            if self._size > 2:
                for other in self._rotated():
                    self._send(other, result)
        if self._size > 2:
            for other in self._others:
                for begin, end in self._steps(*parts[other], dtype):
                    numbers = self._receive(other).view(dtype)
                    if out is not None:
                        out.write(begin, end, numbers)

    def reduce_scatter(self, source: np.ndarray, out: np.ndarray, combine: Combiner) -> None:
        self._gather()
        blocks = source.reshape(self._size, out.size)
        for other in self._rotated():
            for begin, end in self._steps(0, out.size, out.dtype):
                self._send(other, blocks[other, begin:end])
        for begin, end in self._steps(0, out.size, out.dtype):
            combine(
                [
                    blocks[place, begin:end] if place == self._place else self._receive(place).view(out.dtype)
                    for place in range(self._size)
                ],
                out[begin:end],
            )

    def allgather(self, source: np.ndarray, out: np.ndarray) -> None:
        out[self._place] = source
        if not self._agreed and self._is_small(source.nbytes):
            gathered = self._gather(source)
            for other in self._others:
                out[other] = gathered[other].view(source.dtype)
            return
        if not self._agreed:
            self._gather()
        for begin, end in self._steps(0, source.size, source.dtype):
            for other in self._rotated():
                self._send(other, source[begin:end])
        for other in self._others:
            for begin, end in self._steps(0, source.size, source.dtype):
                out[other, begin:end] = self._receive(other).view(source.dtype)

    def broadcast(self, data: BufferList, root: int) -> None:
        is_root = self._place == root
        if self._is_small(data.count):
            gathered = self._gather(self._view(data, 0, data.count, _BYTES) if is_root else None)
            if not is_root:
                data.write(0, data.count, gathered[root])
            return
        self._gather()
        before, after = (self._place - 1) % self._size, (self._place + 1) % self._size
        for begin, end in self._steps(0, data.count, _BYTES):  # from each to the next, so that no line carries it twice
            numbers = self._view(data, begin, end, _BYTES) if is_root else self._receive(before)
            if after != root:
                self._send(after, numbers)
            if not is_root:
                data.write(begin, end, numbers)

    def all_to_all(
        self, source: np.ndarray, out: np.ndarray, counts: np.ndarray, send_at: Sequence[int], receive_at: Sequence[int]
    ) -> None:
        if not self._agreed:
            self._gather()
        for other in self._rotated():
            for begin, end in self._steps(
                send_at[other], send_at[other] + int(counts[self._place, other]), source.dtype
            ):
                self._send(other, source[begin:end])
        count = int(counts[self._place, self._place])
        out[receive_at[self._place] : receive_at[self._place] + count] = source[
            send_at[self._place] : send_at[self._place] + count
        ]
        for other in self._others:
            for begin, end in self._steps(
                receive_at[other], receive_at[other] + int(counts[other, self._place]), out.dtype
            ):
                out[begin:end] = self._receive(other).view(out.dtype)

    def barrier(self) -> None:
        self._gather()

    def finish(self) -> None:
        """Returns when what this rank sends may be changed again."""
        for sent in self._unsent:
            while not sent(_LOOK_EVERY_S):
                self._check({place for place in self._others if self._given[place]}, lambda: sent(0))
            self._restart()

    # ---- what they are made of

    def _gather(self, payload: np.ndarray | None = None) -> list[np.ndarray]:
        """Announces the collective, and waits until all have; what each has put into its announcement."""
        mine = self._mine if payload is None else self._mine._replace(payload=payload.view(np.uint8))
        body = announced(mine._replace(asked=mine.asked[:_ASKED_ROOM]))
        for other in self._rotated():
            self._office.send(self._ranks[other], letters.ANNOUNCE, body, self._group, self._token)
        found = self._arrivals.announced
        self._await(lambda: {place for place in self._others if self._ranks[place] not in found})
        everyone = [mine if place == self._place else found[self._ranks[place]] for place in range(self._size)]
        for place, theirs in enumerate(everyone):
            if theirs.digest != everyone[0].digest:
                raise Mismatch(
                    mismatch_text(
                        everyone[0].key, (self._name(0), everyone[0].asked), (self._name(place), theirs.asked)
                    )
                )
        self._agreed = True
        return [theirs.payload for theirs in everyone]

    def _send(self, other: int, numbers: np.ndarray) -> None:
        part = self._given[other]
        self._given[other] += 1
        self._unsent.append(
            self._office.send(self._ranks[other], letters.PART, numbers.view(np.uint8), self._group, self._token, part)
        )

    def _receive(self, other: int) -> np.ndarray:
        """The next part from another; they are asked for in the order in which that one sends them."""
        key = self._ranks[other], self._taken[other]
        self._taken[other] += 1
        parts = self._arrivals.parts
        self._await(lambda: set() if key in parts else {other})
        return parts.pop(key)

    def _combine(
        self,
        inputs: Sequence[np.ndarray],
        out: BufferList | None,
        begin: int,
        end: int,
        dtype: np.dtype,
        combine: Combiner,
    ) -> np.ndarray:
        whole = None if out is None else out.view(begin, end)
        result = empty(end - begin, dtype) if whole is None else whole
        if end > begin:
            combine(inputs, result)
            if out is not None and whole is None:
                out.write(begin, end, result)
        return result

    def _view(self, pieces: BufferList, begin: int, end: int, dtype: np.dtype) -> np.ndarray:
        numbers = pieces.view(begin, end)
        if numbers is None:
            numbers = empty(end - begin, dtype)
            pieces.read(begin, end, numbers)
        return numbers

    def _steps(self, begin: int, end: int, dtype: np.dtype) -> list[tuple[int, int]]:
        step = self._chunk // dtype.itemsize
        return [(at, min(at + step, end)) for at in range(begin, end, step)]

    def _rotated(self) -> list[int]:
        """The others, from the next one on, so that not all send to the same one first."""
        return self._others[self._place :] + self._others[: self._place]

    def _is_small(self, count: int) -> bool:
        return count * self._size <= min(_SMALL_BYTES, self._chunk * self._size)

    def _name(self, place: int) -> str:
        return self._office.peers.all[self._ranks[place]].name

    # ---- waiting

    def _restart(self) -> None:
        """Begins to count anew: the time limit is for a rank that does not go on, not for all numbers."""
        self._waited_s, self._looked = 0.0, time.monotonic()

    def _is_over(self) -> bool:
        """Return True at the time limit. A pause of this process hardly counts: its messages are read first."""
        now = time.monotonic()
        self._waited_s += min(now - self._looked, _LONGEST_LOOK_S)
        self._looked = now
        return self._waited_s > self._timeout_s

    def _await(self, missing: Callable[[], set[int]]) -> None:
        """Returns when nobody is missing any more.

        Args:
            missing: places of those whose letters have not come. Called with the lock held.
        """
        while True:
            with self._office.lock:
                if (
                    self._arrivals.changed.wait_for(lambda: not missing() or self._ended(missing()), _LOOK_EVERY_S)
                    and not missing()
                ):
                    self._restart()
                    return
                absent = missing()
            self._check(absent, lambda: not missing())

    def _ended(self, absent: set[int]) -> bool:
        return self._office.is_broken(self._group) or any(
            self._office.peers.all[self._ranks[place]].gone for place in absent
        )

    def _check(self, absent: set[int], came: Callable[[], bool]) -> None:
        """Raises if there is no use in waiting any longer for some ranks, unless what is waited for has come."""
        peers = self._office.peers
        ranks = [self._ranks[place] for place in absent]
        over = self._is_over()
        peers.look(ranks)
        error: Exception | None = None
        lost = [peers.all[rank].lost for rank in ranks if peers.all[rank].gone]
        if lost:
            error = PeerLost(f"{self._what} cannot complete: {lost[0]}.")
        elif over:
            error = Stalled(self._stalled(sorted(absent)))
        with self._office.lock:
            if came():
                return
            self._office.check(self._group)
        if error is not None:
            raise error

    def _stalled(self, absent: list[int]) -> str:
        silent = self._office.peers.silent([self._ranks[place] for place in absent])
        cut_off = "".join(
            f"\n{peer.name} does not answer at {peer.address}: its host is off or unreachable." for peer in silent
        )
        lines = [""] * len(absent)
        if not silent:
            lines = self._office.places([self._ranks[place] for place in absent], _ANSWER_TIMEOUT_S)
        if self._agreed:
            names = ", ".join(self._name(place) for place in absent)
            return f"{self._what}: " + stopped_text(names, self._timeout_s, ", ".join(filter(None, lines))) + cut_off
        here = [self._name(place) for place in range(self._size) if place not in absent]
        with self._office.lock:
            waits = [
                (self._name(place), line, self._office.awaited(self._group, self._ranks[place]))
                for place, line in zip(absent, lines)
            ]
        return stall_text(self._what, self._timeout_s, here, waits, "") + cut_off


def _split(count: int, size: int) -> list[tuple[int, int]]:
    width = -(-count // size)
    return [(min(count, place * width), min(count, (place + 1) * width)) for place in range(size)]
