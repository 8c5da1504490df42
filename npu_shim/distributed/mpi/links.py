"""The data between the leaders of a group within one collective."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Tuple

import numpy as np

from npu_shim.distributed.collectives.errors import PeerLost, Stalled, stopped_rank_text
from npu_shim.distributed.mpi.order import LeaderOrder
from npu_shim.distributed.mpi.span import Span
from npu_shim.distributed.mpi.wire import Wire
from npu_shim.distributed.shm.barrier import wait_until
from npu_shim.distributed.shm.liveness import Peers
from npu_shim.distributed.shm.segment import Segment

if TYPE_CHECKING:
    from mpi4py import MPI

    Transfers = List[Tuple[int, MPI.Request]]  # hosts and their requests

# A link is slower than memory, so who spins for its data takes the processor from those who could send them.
SPINS = 20
_MAX_SLEEP_S = 1e-4  # MPI moves data only while it is asked whether they are there


class Links:
    """The leader of this host, connected with the leaders of the other hosts of a group.

    Args:
        wire: MPI.
        order: has the tags of the current collective.
        span: the hosts.
        peers: the members on this host.
        segment: of the group on this host.
        timeout_s: how long to wait for data.
    """

    def __init__(
        self, wire: Wire, order: LeaderOrder, span: Span, peers: Peers, segment: Segment, timeout_s: float
    ) -> None:
        self._wire, self._order, self._span = wire, order, span
        self._peers, self._segment, self._timeout_s = peers, segment, timeout_s
        self._sends: list[Transfers] = [[], []]  # by half of the slots
        self._receives: list[MPI.Request] = []  # requests, which keep their memory after an error, too

    def send(self, host: int, data: np.ndarray, half: int) -> None:
        """Start to send an array, which lies in a half of the slots."""
        if data.size:
            request = self._wire.send(self._span.leaders[host], self._order.tags[host], data)
            self._sends[half].append((host, request))

    def receive(self, parts: list[tuple[int, np.ndarray]]) -> None:
        """Receive arrays from hosts, and return when all are complete."""
        self.wait(self.start_receiving(parts))

    def start_receiving(self, parts: list[tuple[int, np.ndarray]]) -> Transfers:
        """Start to receive arrays from hosts."""
        tag = self._order.tags[self._span.own]
        started = [(host, self._wire.receive(self._span.leaders[host], tag, data)) for host, data in parts if data.size]
        self._receives += [request for _, request in started]
        return started

    def flush(self, half: int) -> None:
        """Return when the arrays in a half of the slots may be changed."""
        sends, self._sends[half] = self._sends[half], []
        self.wait(sends)

    def wait(self, transfers: Transfers) -> None:
        """Return when transfers are complete."""
        if transfers:
            requests = [request for _, request in transfers]
            wait_until(
                lambda: self._wire.is_done(requests),
                lambda waited_s: self._raise_for_failure_or_stall(waited_s, transfers),
                SPINS,
                _MAX_SLEEP_S,
            )
            self._receives = [request for request in self._receives if request]  # complete ones are null

    def _raise_for_failure_or_stall(self, waited_s: float, transfers: Transfers) -> None:
        self._wire.progress()
        error = self._peers.find_failure(self._segment) or self._order.find_failure()
        lost = self._peers.find_lost() or self._order.find_lost()
        if error is None and lost:
            error = PeerLost(f"{lost} in the middle of a collective.")
        waits = [host for host, request in transfers if not self._wire.is_done([request])]
        if error is None and waits and waited_s > self._timeout_s:
            name = self._wire.name_of_rank(self._span.leaders[waits[0]])
            error = Stalled(stopped_rank_text(name, self._timeout_s, self._order.script_line_of_leader(waits[0])))
        if error is not None and waits:
            raise error
