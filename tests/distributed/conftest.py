"""Ranks as processes of their own, which run the source that a test gives them."""

from __future__ import annotations

import os
import pathlib
import signal
import textwrap
import time
import uuid
from typing import Any, Callable, Iterator, NamedTuple

import pytest

from npu_shim.distributed.addresses import free_base_port
from tests.distributed import forks, rank_process


class Failed(NamedTuple):
    """The error that a rank answered with."""

    kind: str
    text: str


class Rank:
    """One process."""

    def __init__(self, rank: int, size: int, job: str, options: dict[str, Any], environment: dict[str, str]) -> None:
        self.rank = rank
        self._pipe, theirs = forks.context.Pipe()
        self.process = forks.context.Process(
            target=rank_process.main,
            daemon=True,
            args=(
                theirs,
                rank,
                size,
                job,
                options,
                {
                    "RANK_ID": str(rank),
                    "RANK_SIZE": str(size),
                    "JOB_ID": job,
                    "NPU_SHIM_FALLBACK": "silent",
                    "NPU_SHIM_COLLECTIVE_TIMEOUT": "20",
                    **environment,
                },
            ),
        )
        self.process.start()
        theirs.close()

    def tell(self, source: str, given: dict[str, Any]) -> None:
        self._pipe.send((textwrap.dedent(source), given))

    def answer(self, timeout_s: float = 60.0) -> Any:
        """The result of what it was told, Failed, or None when the process is gone."""
        assert self._pipe.poll(timeout_s), f"rank {self.rank} did not answer within {timeout_s} s"
        try:
            kind, *rest = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        return Failed(*rest) if kind == "error" else rest[0]

    def end(self) -> None:
        """Lets it end by itself, and ends it where it does not."""
        self._pipe.close()
        self.process.join(10)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()


class Ranks:
    """The ranks of a job.

    ``carrier`` is 'shm' or 'servers'. Ranks that are started later for the same
    ``job`` find the others. ``stall_timeouts`` has a number of seconds for each rank,
    so that which of them loses patience does not hang on the machine's load.
    """

    ports: dict[str, int] = {}  # by job, the port of rank 0

    def __init__(
        self,
        size: int,
        carrier: str = "shm",
        job: str | None = None,
        only: list[int] | None = None,
        stall_timeouts: list[float] | None = None,
        **options: Any,
    ) -> None:
        self.job = job or f"test-{uuid.uuid4().hex}"
        self.size, self.carrier = size, carrier
        port = self.ports.setdefault(self.job, free_base_port(max(size, 4)))
        environment = options.pop("environment", {})
        if options.get("tensorflow"):
            environment = {
                **environment,
                "NPU_SHIM_COLLECTIVES": {"shm": "shm", "servers": "tensorflow"}[carrier],
                "HCCL_IF_BASE_PORT": str(port),
            }
        else:
            options["carrier"] = carrier
            if carrier == "servers":
                options["addresses"] = [f"127.0.0.1:{port + rank}" for rank in range(size)]
        self.ranks = [
            Rank(
                r,
                size,
                self.job,
                dict(options, stall_timeout_s=stall_timeouts[r]) if stall_timeouts else options,
                environment,
            )
            for r in (range(size) if only is None else only)
        ]

    def joined(self, timeout_s: float = 60.0) -> list[Any]:
        """None for each rank that joined, Failed for the others."""
        return [rank.answer(timeout_s) for rank in self.ranks]

    def start(self, source: str, **given: Any) -> None:
        """Tells every rank to run source."""
        for rank in self.ranks:
            rank.tell(source, given)

    def answers(self, timeout_s: float = 60.0) -> list[Any]:
        """What every rank answers."""
        return [rank.answer(timeout_s) for rank in self.ranks]

    def attempt(self, source: str, **given: Any) -> list[Any]:
        """Runs source on every rank; ``result`` of each, or Failed."""
        self.start(source, **given)
        return self.answers()

    def run(self, source: str, **given: Any) -> list[Any]:
        """As attempt, where no rank may fail."""
        answers = self.attempt(source, **given)
        failed = {rank: answer for rank, answer in enumerate(answers) if isinstance(answer, Failed)}
        assert not failed, "\n".join(f"rank {r}: {f.kind}: {f.text}" for r, f in failed.items())
        return answers

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        os.kill(self.ranks[rank].process.pid, number)

    def end(self) -> None:
        for rank in self.ranks:
            rank.end()


def leaves_nothing(ranks: Ranks) -> bool:
    """Whether the folder in which the ranks met is gone."""
    return ranks.carrier == "servers" or not folder_of(ranks.job).exists()


def folder_of(job: str) -> pathlib.Path:
    """The folder in which the ranks of a job meet."""
    from npu_shim.distributed.shm import job_directory as folder

    return pathlib.Path(folder.job_folder(job))


@pytest.fixture(params=["shm", "servers"])
def carrier(request: Any) -> str:
    """What carries the collectives of a test."""
    return request.param


@pytest.fixture
def ranks_of(carrier: str) -> Iterator[Callable[..., Ranks]]:
    """ranks_of(size, ...) starts ranks; they are ended, and what they leave behind is looked at, after the test."""
    started: list[Ranks] = []

    def start(size: int, join: bool = True, **options: Any) -> Ranks:
        started.append(Ranks(size, carrier, **options))
        if join:
            assert started[-1].joined() == [None] * len(started[-1].ranks)
        return started[-1]

    yield start
    for ranks in started:
        ranks.end()
    for ranks in started:
        assert leaves_nothing(ranks) or all(r.process.exitcode == -signal.SIGKILL for r in ranks.ranks)


@pytest.fixture(
    scope="module",
    params=[("shm", 2), ("shm", 3), ("shm", 4), ("servers", 2), ("servers", 3)],
    ids="{0[1]} ranks on {0[0]}".format,
)
def ranks(request: Any) -> Iterator[Ranks]:
    """Joined ranks with small slots, so that small tensors need several of them; all tests of a module use the same."""
    carrier, size = request.param
    made = Ranks(size, carrier, chunk_bytes=4096, stall_timeout_s=20)
    assert made.joined() == [None] * size
    yield made
    made.end()
    assert leaves_nothing(made)


def wait_for(true: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Returns when something is true."""
    give_up = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < give_up, "it did not come true"
        time.sleep(0.01)
