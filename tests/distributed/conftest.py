"""Ranks as separate processes that run the source which a test sends them."""

from __future__ import annotations

import os
import pathlib
import signal
import textwrap
import time
import uuid
from typing import Any, Callable, Iterator, NamedTuple

import pytest

from tests.distributed import forks, mpi_ranks, rank_process

# The backends that tests run over; tests/run.sh has a suite for "mpi", whose ranks mpirun starts.
BACKENDS = os.environ.get("NPU_SHIM_TEST_BACKENDS", "shm").split()
IS_NIGHTLY = os.environ.get("NPU_SHIM_RANK_CASES") == "all"  # then tests of ranks run all their cases


class Failed(NamedTuple):
    """The error that a rank returned."""

    kind: str
    text: str


class Rank:
    """One process."""

    def __init__(
        self,
        rank: int,
        size: int,
        job: str,
        options: dict[str, Any],
        environment: dict[str, str],
        launched: mpi_ranks.Launched | None = None,
    ) -> None:
        self.rank = rank
        variables = {
            "RANK_ID": str(rank),
            "RANK_SIZE": str(size),
            "JOB_ID": job,
            "NPU_SHIM_FALLBACK": "silent",
            "NPU_SHIM_COLLECTIVE_TIMEOUT": "20",
            **environment,
        }
        if launched is not None:
            self._pipe, self.process = launched.pipes[rank], None
            self._pipe.send((rank, size, job, options, variables))
            return
        self._pipe, theirs = forks.context.Pipe()
        self.process = forks.context.Process(
            target=rank_process.main, daemon=True, args=(theirs, rank, size, job, options, variables)
        )
        self.process.start()
        theirs.close()

    def send(self, source: str, given: dict[str, Any]) -> None:
        """Start the execution of source with some variables."""
        self._pipe.send((textwrap.dedent(source), given))

    def result(self, timeout_s: float = 180.0) -> Any:
        """Return the result of the source, Failed, or None if the process has died."""
        assert self._pipe.poll(timeout_s), f"rank {self.rank} returned nothing within {timeout_s} s"
        try:
            kind, *rest = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        return Failed(*rest) if kind == "error" else rest[0]

    def end(self) -> None:
        """Let the process exit, and kill it if it does not."""
        self._pipe.close()
        if self.process is None:
            return
        self.process.join(10)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()


class Ranks:
    """The ranks of a job.

    ``backend`` is 'shm' or 'mpi'. Ranks that start later with the same ``job`` find
    the others. ``stall_timeouts`` has the timeout of each rank in seconds, so that
    the rank that times out does not depend on the load of the machine.
    """

    def __init__(
        self,
        size: int,
        backend: str = "shm",
        job: str | None = None,
        only: list[int] | None = None,
        stall_timeouts: list[float] | None = None,
        **options: Any,
    ) -> None:
        self.job = job or f"test-{uuid.uuid4().hex}"
        self.size, self.backend = size, backend
        environment = options.pop("environment", {})
        if not options.get("tensorflow"):
            options["backend"] = backend
            if backend == "mpi":
                options.setdefault("servers", mpi_ranks.SERVERS[size])
        self.launched = mpi_ranks.Launched(size) if backend == "mpi" else None
        self.ranks = [
            Rank(
                r,
                size,
                self.job,
                dict(options, stall_timeout_s=stall_timeouts[r]) if stall_timeouts else options,
                environment,
                self.launched,
            )
            for r in (range(size) if only is None else only)
        ]

    def joined(self, timeout_s: float = 60.0) -> list[Any]:
        """Return None for each rank that joined, Failed for the others."""
        return [rank.result(timeout_s) for rank in self.ranks]

    def start(self, source: str, **given: Any) -> None:
        """Start source on every rank."""
        for rank in self.ranks:
            rank.send(source, given)

    def results(self, timeout_s: float = 180.0) -> list[Any]:
        """Return the result of every rank."""
        return [rank.result(timeout_s) for rank in self.ranks]

    def attempt(self, source: str, **given: Any) -> list[Any]:
        """Run source on every rank; return ``result`` of each, or Failed."""
        self.start(source, **given)
        return self.results()

    def run(self, source: str, **given: Any) -> list[Any]:
        """Run source on every rank, none of which may fail."""
        results = self.attempt(source, **given)
        failed = {rank: result for rank, result in enumerate(results) if isinstance(result, Failed)}
        assert not failed, "\n".join(f"rank {r}: {f.kind}: {f.text}" for r, f in failed.items())
        return results

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        os.kill(self.launched.pids[rank] if self.launched else self.ranks[rank].process.pid, number)

    def end(self) -> None:
        for rank in self.ranks:
            rank.end()
        if self.launched is not None:
            self.launched.end()


def is_clean(ranks: Ranks) -> bool:
    """Return True if the job directory has been removed."""
    jobs = [f"{ranks.job} on server {rank}" for rank in range(ranks.size)] if ranks.backend == "mpi" else [ranks.job]
    return not any(directory_of(job).exists() for job in jobs)


def directory_of(job: str) -> pathlib.Path:
    """Return the job directory."""
    from npu_shim.distributed.shm.job_directory import job_directory_path

    return pathlib.Path(job_directory_path(job))


@pytest.fixture
def ranks_of() -> Iterator[Callable[..., Ranks]]:
    """Yield a function ranks_of(size, ...) that starts ranks. After the test they end, and their cleanup is checked."""
    started: list[Ranks] = []

    def start(size: int, join: bool = True, **options: Any) -> Ranks:
        started.append(Ranks(size, **options))
        if join:
            assert started[-1].joined() == [None] * len(started[-1].ranks)
        return started[-1]

    yield start
    for ranks in started:
        ranks.end()
    for ranks in started:
        assert is_clean(ranks) or all(r.process.exitcode == -signal.SIGKILL for r in ranks.ranks)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((backend, size), marks=[pytest.mark.nightly] * (size > 3))
        for backend in BACKENDS
        for size in (2, 3, 4)
    ],
    ids="{0[1]} ranks on {0[0]}".format,
)
def ranks(request: Any) -> Iterator[Ranks]:
    """Yield joined ranks with small slots, so that small tensors need several; shared by the tests of a module."""
    backend, size = request.param
    made = Ranks(size, backend, chunk_bytes=4096, stall_timeout_s=20)
    assert made.joined() == [None] * size
    yield made
    made.end()
    assert is_clean(made)


def wait_for(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Return when a condition is true."""
    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up, "the condition did not become true"
        time.sleep(0.01)
