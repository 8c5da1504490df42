"""The order of a group's collectives, on which the leaders of its hosts agree.

A host *offers* a collective when all of its ranks have announced it. In each round
the leaders choose one of the collectives that every host has offered:

1. Each leader commits itself to one collective, together with its offer.
2. If all have committed themselves to the same one, it is chosen. The usual case
   thus takes one message from each leader to each other one.
3. Otherwise the leader of the first host chooses one that all have offered.

Every leader sees the same commitments, so all take the same way.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed.collectives.errors import CollectiveError, error_code, mismatch_text, stall_text
from npu_shim.distributed.mpi.span import Span
from npu_shim.distributed.mpi.wire import Offer, Wire
from npu_shim.distributed.shm.announcements import Announcements, PendingCollective
from npu_shim.distributed.shm.host_order import HostOrder

_REQUEST_CHARACTERS = 2000
_ANSWER_TIMEOUT_S = 3.0


class LeaderOrder(HostOrder):
    """The order of the collectives of a group as the leader of one host sees it.

    Args:
        wire: MPI.
        group: number of the group.
        span: its hosts.
    """

    def __init__(self, wire: Wire, group: int, span: Span) -> None:
        self._wire, self._group, self._span = wire, group, span
        self.announcements: Announcements | None = None  # of the scheduler that uses this order
        self._inbox = wire.inbox(group)
        self._others = [span.leaders[host] for host in span.others]
        self._remote = [rank for host in span.others for rank in span.hosts[host]]
        self._ready: dict[int, None] = {}  # tokens that this host has offered, in their order
        self._round, self._is_committed = 0, False
        self.tags: list[int] = []  # of each host for the data of the current collective

    def offer(self, pending: PendingCollective, mismatched_request: tuple[str, str] | None) -> None:
        offer = Offer(
            pending.digest,
            pending.key,
            pending.request[:_REQUEST_CHARACTERS],
            self._wire.name_of_rank(self._wire.rank),
            mismatched_request,
            self._wire.new_tag(),
        )
        number = None if self._is_committed else self._round
        self._wire.post(self._others, "offer", self._group, self._span.own, pending.token, tuple(offer), number)
        self._inbox.offers[pending.token][self._span.own] = offer
        self._ready[pending.token] = None
        if number is not None:
            self._commit(pending.token)

    def next_token_and_mismatch(self) -> tuple[int, str] | None:
        self._wire.progress()
        if not self._is_committed and self._ready:
            token = next(iter(self._ready))
            self._wire.post(self._others, "commit", self._group, self._span.own, token, self._round)
            self._commit(token)
        chosen = self._agreed_token()
        if chosen is None:
            return None
        self._inbox.commits.pop(self._round)
        self._inbox.runs.pop(self._round, None)
        offers = self._inbox.offers.pop(chosen)
        del self._ready[chosen]
        self._round, self._is_committed = self._round + 1, False
        self.tags = [offers[host].tag for host in range(len(self._span.hosts))]
        return chosen, _mismatch_text([offers[host] for host in range(len(self._span.hosts))])

    def _commit(self, token: int) -> None:
        self._inbox.commits[self._round][self._span.own] = token
        self._is_committed = True

    def _agreed_token(self) -> int | None:
        commits = self._inbox.commits.get(self._round, {})
        if len(commits) < len(self._span.hosts):
            return None
        tokens = set(commits.values())
        if len(tokens) == 1:
            return tokens.pop()
        if self._span.own == 0:
            for token in self._ready:
                if len(self._inbox.offers[token]) == len(self._span.hosts):
                    self._wire.post(self._others, "run", self._group, self._round, token)
                    return token
        return self._inbox.runs.get(self._round)

    def find_failure(self) -> CollectiveError | None:
        return self._inbox.failure

    def find_lost(self) -> str | None:
        return self._wire.find_lost(self._remote)

    def stall_message(self, pending: PendingCollective, waited_s: float) -> str:
        assert self.announcements is not None
        hosts = [self._span.hosts[host] for host in self._span.others]
        answers = dict(zip(self._span.others, self._wire.ask(self._group, pending.token, hosts, _ANSWER_TIMEOUT_S)))
        answers[self._span.own] = self.announcements.announced_and_missing_ranks(pending.packed_token)
        present: list[str] = []
        missing: list[tuple[str, str, Sequence[str]]] = []
        silent = ""
        for host in range(len(self._span.hosts)):
            answer = answers[host]
            if answer is None:
                name = self._wire.name_of_rank(self._span.leaders[host])
                missing.append((name, "without an answer", []))
                silent += f"\n{name} does not answer: its process is stopped, or its host is off or unreachable."
            else:
                present += answer[0]
                missing += answer[1]
        first = self._wire.name_of_rank(self._span.leaders[0])
        return stall_text(f"{pending.key} ({pending.request})", waited_s, present, missing, first) + silent

    def script_line_of_leader(self, host: int) -> str:
        """Return where the leader of a host is in its script, for a collective that stopped."""
        leader = self._span.leaders[host]
        (answer,) = self._wire.ask(self._group, 0, [[leader]], _ANSWER_TIMEOUT_S)
        places = [place for name, place, _ in answer[1] if name == self._wire.name_of_rank(leader)] if answer else []
        return places[0] if places else "without an answer: its process is stopped, or its host is off or unreachable"

    def fail(self, error: CollectiveError) -> None:
        self._wire.post(self._others, "failed", self._group, error_code(error), str(error)[:_REQUEST_CHARACTERS])


def _mismatch_text(offers: Sequence[Offer]) -> str:
    """Return the message for requests that differ, the same on every host; empty if they agree."""
    first = offers[0]
    for offer in offers:
        different = (offer.name, offer.request) if offer.digest != first.digest else offer.different
        if different is not None:
            return mismatch_text(first.key, (first.name, first.request), different)
    return ""
