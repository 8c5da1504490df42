"""Ranks as processes of their own, which run the source that a test gives them."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import pytest

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("rank_process", str(HERE / "rank_process.py"))
protocol = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(protocol)


class Failed(NamedTuple):
    """The error that a rank answered with."""

    kind: str
    text: str


class Rank:
    """One process."""

    def __init__(self, rank: int, size: int, job: str, options: Dict[str, Any], root: pathlib.Path) -> None:
        self.rank = rank
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "rank_process.py"), str(rank), str(size), job, json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                 "RANK_ID": str(rank), "RANK_SIZE": str(size), "JOB_ID": job, "NPU_SHIM_FALLBACK": "silent",
                 "NPU_SHIM_COLLECTIVE_TIMEOUT": "20"})

    def tell(self, source: str, given: Dict[str, Any]) -> None:
        protocol.write(self.process.stdin, (source, given))

    def answer(self, timeout_s: float = 60.0) -> Any:
        """The result of what it was told, Failed, or None when the process is gone."""
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        assert ready, f"rank {self.rank} did not answer within {timeout_s} s"
        try:
            kind, *rest = protocol.read(self.process.stdout)
        except EOFError:
            return None
        return Failed(*rest) if kind == "error" else rest[0]

    def end(self) -> None:
        """Lets it end by itself, and ends it where it does not."""
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                self.process.stdin = None
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Ranks:
    """The ranks of a job."""

    def __init__(self, size: int, root: pathlib.Path, job: Optional[str] = None, only: Optional[List[int]] = None,
                 **options: Any) -> None:
        self.job = job or f"test-{uuid.uuid4().hex}"
        self.size = size
        self.ranks = [Rank(r, size, self.job, options, root) for r in (range(size) if only is None else only)]

    def joined(self, timeout_s: float = 60.0) -> List[Any]:
        """None for each rank that joined, Failed for the others."""
        return [rank.answer(timeout_s) for rank in self.ranks]

    def start(self, source: str, **given: Any) -> None:
        """Tells every rank to run source."""
        for rank in self.ranks:
            rank.tell(textwrap.dedent(source), given)

    def answers(self, timeout_s: float = 60.0) -> List[Any]:
        """What every rank answers."""
        return [rank.answer(timeout_s) for rank in self.ranks]

    def attempt(self, source: str, **given: Any) -> List[Any]:
        """Runs source on every rank; ``result`` of each, or Failed."""
        self.start(source, **given)
        return self.answers()

    def run(self, source: str, **given: Any) -> List[Any]:
        """As attempt, where no rank may fail."""
        answers = self.attempt(source, **given)
        failed = {rank: answer for rank, answer in enumerate(answers) if isinstance(answer, Failed)}
        assert not failed, "\n".join(f"rank {r}: {f.kind}: {f.text[-1500:]}" for r, f in failed.items())
        return answers

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        self.ranks[rank].process.send_signal(number)

    def end(self) -> None:
        for rank in self.ranks:
            rank.end()


def folder_of(job: str) -> pathlib.Path:
    """The folder in which the ranks of a job meet."""
    from npu_shim.distributed.shm import folder

    return pathlib.Path(folder.job_folder(job))


@pytest.fixture
def ranks_of(repo_root: pathlib.Path) -> Iterator[Callable[..., Ranks]]:
    """ranks_of(size, ...) starts ranks; they are ended, and what they leave behind is looked at, after the test."""
    started: List[Ranks] = []

    def start(size: int, join: bool = True, **options: Any) -> Ranks:
        started.append(Ranks(size, repo_root, **options))
        if join:
            assert started[-1].joined() == [None] * len(started[-1].ranks)
        return started[-1]

    yield start
    for ranks in started:
        ranks.end()
    for ranks in started:
        assert not folder_of(ranks.job).exists() or all(r.process.returncode == -signal.SIGKILL for r in ranks.ranks)


@pytest.fixture(scope="module", params=[2, 3, 4], ids="{} ranks".format)
def ranks(request: Any, repo_root: pathlib.Path) -> Iterator[Ranks]:
    """Joined ranks with small slots, so that small tensors need several of them; all tests of a module use the same."""
    made = Ranks(request.param, repo_root, chunk_bytes=4096, stall_timeout_s=20)
    assert made.joined() == [None] * request.param
    yield made
    made.end()
    assert not folder_of(made.job).exists()


def wait_for(true: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Returns when something is true."""
    give_up = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < give_up, "it did not come true"
        time.sleep(0.01)
