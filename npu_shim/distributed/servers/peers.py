"""Liveness of the other ranks: their identity and state."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Sequence

UP, DOWN, SILENT = "up", "down", "silent"
_PROBE_EVERY_S, _PROBE_TIMEOUT_S, _AGAIN_S = 0.5, 1.0, 0.25


class Peer:
    """The state of one rank. The receiving thread writes it, and waiting threads read it."""

    def __init__(self, rank: int, address: str, with_host: bool) -> None:
        self.rank, self.address = rank, address
        self.life = 0  # the random number of its process; 0 until it has said who it is
        self.process = 0
        self.knows_me = False
        self.greeted = 0  # the life to which this rank has sent its identity
        self.gone: str | None = None  # 'died', or how it ended
        self._host = f" on {address.rpartition(':')[0]}" if with_host else ""

    @property
    def name(self) -> str:
        """'rank 3 (process 4711)', with the host where there are several."""
        return (
            f"rank {self.rank} (process {self.process}{self._host})"
            if self.process
            else f"rank {self.rank}{self._host}"
        )

    @property
    def lost(self) -> str | None:
        """Says that it is gone; None while it lives."""
        return f"{self.name} {self.gone}" if self.gone else None


class Peers:
    """All ranks, this one among them.

    A rank whose host says that nobody listens at its port any more has died. One
    that does not answer at all may only be cut off: it is given the time of the
    collective, and named when that is over.
    """

    def __init__(self, rank: int, addresses: Sequence[str], life: int) -> None:
        hosts = {address.rpartition(":")[0] for address in addresses}
        self.all = [Peer(other, address, len(hosts) > 1) for other, address in enumerate(addresses)]
        self.me = self.all[rank]
        self.me.life, self.me.process, self.me.knows_me = life, os.getpid(), True
        self.others = [peer for peer in self.all if peer is not self.me]
        self._looking = threading.Lock()
        self._looked = 0.0

    def look(self, ranks: Sequence[int]) -> None:
        """Finds out which of some ranks have died; about twice a second, however often it is called."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            if time.monotonic() - self._looked >= _PROBE_EVERY_S:
                self._find_dead([self.all[rank] for rank in ranks if self.all[rank] is not self.me])
                self._looked = time.monotonic()
        finally:
            self._looking.release()

    def _find_dead(self, peers: list[Peer]) -> None:
        down = [peer for peer in peers if peer.gone is None and probe(peer.address) == DOWN]
        if down:
            time.sleep(_AGAIN_S)  # its last words may be on their way
            for peer in down:
                if peer.gone is None and probe(peer.address) == DOWN:
                    peer.gone = "died"

    def silent(self, ranks: Sequence[int]) -> list[Peer]:
        """Those of some ranks whose hosts do not answer."""
        return [self.all[rank] for rank in ranks if probe(self.all[rank].address) == SILENT]


def probe(address: str) -> str:
    """UP when somebody listens at 'host:port', DOWN when the host says that nobody does, else SILENT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_TIMEOUT_S):
            return UP
    except ConnectionRefusedError:
        return DOWN
    except OSError:
        return SILENT
