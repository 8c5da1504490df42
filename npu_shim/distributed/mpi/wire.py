"""MPI as one process uses it: messages between ranks, and the thread that owns MPI.

A thread of its own initializes and finalizes MPI, as MPI wants both from the same
thread, and takes in messages while no collective runs. A thread that runs a
collective calls MPI itself, because to hand a message to another thread takes
longer than to send it. A lock lets in one thread at a time, so MPI needs no more
than ``MPI_THREAD_SERIALIZED``.

Messages about collectives are small Python objects; the data of tensors are bytes
in a communicator of their own.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
import time
from collections import defaultdict
from types import ModuleType
from typing import TYPE_CHECKING, Callable, List, NamedTuple, Sequence, Tuple

import numpy as np

from npu_shim._tensorflow.types import Value
from npu_shim.distributed.collectives import errors

if TYPE_CHECKING:
    from mpi4py import MPI


# The names of the ranks that have announced a collective, and name, line of the script and keys of each other rank
Reached = Tuple[List[str], List[Tuple[str, str, List[str]]]]
_LOOK_EVERY_S, _LEAVE_S = 0.02, 5.0
_TAGS = 30000  # MPI has at least 32767
_LAST_WORDS_S = 0.5  # messages that a rank sent before it left may arrive after the one that it leaves


class Offer(NamedTuple):
    """The announcement that all ranks of a host are ready for a collective.

    ``name`` is the leader, ``different`` name and request of a rank of the host that requests something else, and
    ``tag`` is for the data that the leader receives.
    """

    digest: bytes
    key: str
    request: str
    name: str
    different: tuple[str, str] | None
    tag: int


class Inbox:
    """The messages of the other leaders of a group."""

    def __init__(self) -> None:
        self.offers: dict[int, dict[int, Offer]] = defaultdict(dict)  # by token and host
        self.commits: dict[int, dict[int, int]] = defaultdict(dict)  # tokens by round and host
        self.runs: dict[int, int] = {}  # token by round
        self.failure: errors.CollectiveError | None = None


class Wire:
    """MPI among the ranks of a job.

    Args:
        rank: the rank of this process.
        size: number of ranks.
        hosts: name of the host of each rank, for messages.
        connect_timeout_s: how long MPI may take to start.
        answer: returns which ranks of this host have announced a collective, for a leader that waits for it. Its
            arguments are a group, a token, and the members on this host.
        failed: called with a group that another host has left with an error.
    Raises:
        CollectiveError, Mismatch, Stalled: MPI did not start, or not with these ranks.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        hosts: Sequence[str],
        connect_timeout_s: float,
        answer: Callable[[int, int, Sequence[int]], Reached],
        failed: Callable[[int, errors.CollectiveError], None],
    ) -> None:
        self.rank, self.size, self._hosts, self._answer, self._failed = rank, size, hosts, answer, failed
        self._lock = threading.Lock()
        self._inboxes: dict[int, Inbox] = defaultdict(Inbox)
        self._left: dict[int, tuple[str, float]] = {}
        self._questions: list[tuple[int, int, int, int, list[int]]] = []
        self._answers: dict[int, Reached] = {}
        self._broken: list[tuple[int, errors.CollectiveError]] = []
        self._sent: list[MPI.Request] = []
        self._next_tag = self._next_question = 0
        self._error: errors.CollectiveError | None = None
        self._started, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="npu_shim mpi", daemon=True)
        self._thread.start()
        if not self._started.wait(connect_timeout_s):
            raise errors.Stalled(
                f"rank {rank}: MPI did not start within {connect_timeout_s:g} s, as not all of {size} ranks have "
                "joined. Call collectives on every rank, or export a longer HCCL_CONNECT_TIMEOUT."
            )
        if self._error is not None:
            raise self._error

    # ---- the thread that owns MPI

    def _run(self) -> None:
        try:
            self._initialize()
        except errors.CollectiveError as error:
            self._error = error
        except Exception as error:
            self._error = errors.CollectiveError(
                f"rank {self.rank}: MPI did not start: {type(error).__name__}: {error}"
            )
        self._started.set()
        if self._error is not None:
            return
        while not self._closing.wait(_LOOK_EVERY_S):
            self.progress()
            self._answer_questions_and_report_failures()
        if self._finalizes and getattr(sys, "last_value", None) is None:
            # After an error mpirun must see a process that ends without it, and end the others.
            while len(self._left) < self.size - 1:  # a rank that has ended takes no message, and its sender fails
                self.progress()
                time.sleep(_LOOK_EVERY_S)
            with self._lock:
                self._mpi.Request.Waitall(self._sent)
                self._mpi.Finalize()

    def _initialize(self) -> None:
        self._mpi = import_mpi()
        mpi = self._mpi
        self._finalizes = not mpi.Is_initialized()
        level = mpi.Init_thread(mpi.THREAD_MULTIPLE) if self._finalizes else mpi.Query_thread()
        needed = mpi.THREAD_SERIALIZED if self._finalizes else mpi.THREAD_MULTIPLE
        if level < needed:
            raise errors.CollectiveError(
                f"rank {self.rank}: MPI does not support threads (level {level} of {needed}). Use an MPI library with "
                "thread support; in a script that starts MPI itself, start it with MPI_THREAD_MULTIPLE."
            )
        world = mpi.COMM_WORLD
        if world.size != self.size:
            library = mpi.Get_library_version().splitlines()[0]
            raise errors.Mismatch(
                f"rank {self.rank} (process {os.getpid()}) is one of {world.size} MPI processes, but of "
                f"{self.size} ranks on {len(set(self._hosts))} hosts, which only MPI connects. Start all with npu-shim "
                f"launch --hostfile, or with one mpirun or srun --mpi=pmix of the MPI library of mpi4py ({library})."
            )
        self._control, self._data = world.Dup(), world.Dup()
        identities = self._control.allgather((self.rank, os.getpid(), _hosts_digest(self._hosts)))
        self._mpi_rank = {rank: number for number, (rank, _, _) in enumerate(identities)}
        if sorted(self._mpi_rank) != list(range(self.size)):
            raise errors.Mismatch(
                f"the MPI processes are ranks {[rank for rank, _, _ in identities]}, not each of 0 to {self.size - 1}. "
                "Unset RANK_ID, or give each process its own."
            )
        if len({hosts for _, _, hosts in identities}) > 1:
            raise errors.Mismatch(
                "the ranks have different lists of hosts, as their rank tables differ, or as hosts have different "
                "numbers of ranks without one. Use one rank table, or npu-shim launch --hostfile."
            )
        self._processes = {rank: process for rank, process, _ in identities}

    def _answer_questions_and_report_failures(self) -> None:
        """Answer questions, and report failures to the other ranks of this host."""
        with self._lock:
            questions, self._questions = self._questions, []
            broken, self._broken = self._broken, []
        for group, error in broken:
            self._failed(group, error)
        for asker, number, group, token, members in questions:
            self.post([asker], "answer", number, self._answer(group, token, members))

    def close(self, reason: str) -> None:
        """Leave the job.

        Args:
            reason: shown to the ranks that still need this one.
        """
        self.post([rank for rank in range(self.size) if rank != self.rank], "left", self.rank, reason)
        self._closing.set()
        if self._finalizes and getattr(sys, "last_value", None) is None:
            self._thread.join()  # MPI ends when every rank has come here, or mpirun ends this one
        else:
            self._thread.join(_LEAVE_S)

    # ---- messages about collectives

    def name_of_rank(self, rank: int) -> str:
        """Return a name such as 'rank 3 (process 4711 on 10.0.0.2)'."""
        return errors.rank_name(rank, self._processes[rank], self._hosts[rank])

    def post(self, ranks: Sequence[int], *message: object) -> None:
        """Send a message to some ranks."""
        with self._lock:
            self._sent = [request for request in self._sent if not request.Test()]
            self._sent += [self._control.isend(message, self._mpi_rank[rank]) for rank in ranks]

    def progress(self) -> None:
        """Take in the messages that have arrived."""
        with self._lock:
            while True:
                message = self._control.improbe()
                if message is None:
                    return
                self._deliver(*message.recv())

    def _deliver(self, kind: str, *body: Value) -> None:
        if kind == "offer":
            group, host, token, offer, number = body
            self._inboxes[group].offers[token][host] = Offer(*offer)
            if number is not None:
                self._inboxes[group].commits[number][host] = token
        elif kind == "commit":
            group, host, token, number = body
            self._inboxes[group].commits[number][host] = token
        elif kind == "run":
            group, number, token = body
            self._inboxes[group].runs[number] = token
        elif kind == "failed":
            group, code, text = body
            inbox = self._inboxes[group]
            if inbox.failure is None:
                inbox.failure = errors.error_from_code(code, text)
                self._broken.append((group, inbox.failure))
        elif kind == "left":
            rank, reason = body
            self._left[rank] = reason, time.monotonic()
        elif kind == "ask":
            self._questions.append(body)
        elif kind == "answer":
            number, answer = body
            self._answers[number] = answer

    def inbox(self, group: int) -> Inbox:
        """Return the messages for a group. Only the thread that schedules its collectives changes them."""
        return self._inboxes[group]

    def find_lost(self, ranks: Sequence[int]) -> str | None:
        """Return which of some ranks left the job, with the reason; None while all are there."""
        for rank in ranks:
            if rank in self._left and time.monotonic() - self._left[rank][1] > _LAST_WORDS_S:
                return f"{self.name_of_rank(rank)} {self._left[rank][0]}"
        return None

    def ask(self, group: int, token: int, members: Sequence[Sequence[int]], timeout_s: float) -> list[Reached | None]:
        """Ask the leaders of other hosts which of their ranks have announced a collective.

        Args:
            group: number of the group.
            token: of the collective.
            members: the members on each host, the leader first.
            timeout_s: how long to wait for the answers.
        Returns:
            The answer of each leader; None if there is none.
        """
        with self._lock:
            numbers = [self._next_question + offset for offset in range(len(members))]
            self._next_question += len(members)
        for number, ranks in zip(numbers, members):
            self.post([ranks[0]], "ask", self.rank, number, group, token, list(ranks))
        give_up = time.monotonic() + timeout_s
        while any(number not in self._answers for number in numbers) and time.monotonic() < give_up:
            self.progress()
            time.sleep(_LOOK_EVERY_S / 4)
        return [self._answers.pop(number, None) for number in numbers]

    # ---- data

    def new_tag(self) -> int:
        """Return a tag for the data that this rank receives in one collective."""
        with self._lock:
            self._next_tag = self._next_tag % _TAGS + 1
            return self._next_tag

    def send(self, rank: int, tag: int, data: np.ndarray) -> MPI.Request:
        """Start to send an array to the leader of a host; return the request."""
        with self._lock:
            return self._data.Isend([data.view(np.uint8), self._mpi.BYTE], self._mpi_rank[rank], tag)

    def receive(self, rank: int, tag: int, data: np.ndarray) -> MPI.Request:
        """Start to receive an array from the leader of a host; return the request."""
        with self._lock:
            return self._data.Irecv([data.view(np.uint8), self._mpi.BYTE], self._mpi_rank[rank], tag)

    def is_done(self, requests: list[MPI.Request]) -> bool:
        """Return True if all of some requests are complete.

        Raises:
            PeerLost: MPI has lost a rank.
        """
        with self._lock:
            try:
                return bool(self._mpi.Request.Testall(requests))
            except self._mpi.Exception as error:
                raise errors.PeerLost(f"MPI lost the connection to another host: {error}.") from error


def _hosts_digest(hosts: Sequence[str]) -> bytes:
    """Return a few bytes that tell lists of hosts from each other, whatever the hosts are called."""
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    return hashlib.blake2b(repr([numbers[host] for host in hosts]).encode(), digest_size=8).digest()


def import_mpi() -> ModuleType:
    """Return mpi4py.MPI, without the initialization at import.

    Raises:
        CollectiveError: mpi4py is not installed, or finds no MPI library.
    """
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc.initialize = False
            mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise errors.CollectiveError(
            f"ranks on several hosts need mpi4py and an MPI library, but one is missing on {socket.gethostname()} "
            f"({error}). Install both with pip install 'npu_shim[mpi]', and start the ranks with npu-shim launch "
            "--hostfile, mpirun or srun."
        ) from error
    return MPI
