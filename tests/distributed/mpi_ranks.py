"""Ranks that mpirun starts, as the tests of the MPI backend need them.

    mpirun -np 2 python -m tests.distributed.mpi_ranks ADDRESS

Each rank connects with the test, and then runs its source like any other rank.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Client, Connection, Listener
from typing import Sequence

from tests.distributed import rank_process

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVERS = {2: ["a", "b"], 3: ["a", "b", "b"], 4: ["a", "a", "b", "b"]}


def command(ranks: int, *options: str) -> list[str]:
    """Return the beginning of a command line of mpirun of this environment, for Open MPI or MPICH."""
    mpirun = os.path.join(os.path.dirname(sys.executable), "mpirun")
    found = [mpirun if os.path.exists(mpirun) else shutil.which("mpirun") or "mpirun", *options, "-np", str(ranks)]
    if "Open MPI" in subprocess.run([found[0], "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout:
        found += ["--oversubscribe", "--allow-run-as-root"]
    return found


def environment() -> dict[str, str]:
    """Return the variables of mpirun."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tools'}", "TF_CPP_MIN_LOG_LEVEL": "3"}


class Launched:
    """The ranks of one mpirun; ``pipes`` and ``pids`` are ordered by rank, ``process`` is mpirun."""

    def __init__(self, size: int) -> None:
        self._folder = tempfile.mkdtemp()
        address = os.path.join(self._folder, "socket")
        with Listener(address, "AF_UNIX", backlog=size) as listener:
            with open(self.output, "wb") as stream:
                self.process = subprocess.Popen(
                    [*command(size), sys.executable, "-m", "tests.distributed.mpi_ranks", address],
                    cwd=ROOT,
                    env=environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                )
            found: dict[int, tuple[Connection, int]] = {}
            giving_up = threading.Timer(60, self.process.kill)
            giving_up.start()
            for _ in range(size):
                pipe = listener.accept()
                rank, pid = pipe.recv()
                found[rank] = pipe, pid  # type: ignore[assignment]
            giving_up.cancel()
        self.pipes = [found[rank][0] for rank in range(size)]
        self.pids = [found[rank][1] for rank in range(size)]

    @property
    def output(self) -> str:
        """Return the path of what mpirun and its ranks print."""
        return os.path.join(self._folder, "output")

    def end(self, timeout_s: float = 20.0) -> int:
        """Wait for mpirun, kill it if it does not end, and return its exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            return self.process.wait()
        finally:
            shutil.rmtree(self._folder)


def main(arguments: Sequence[str]) -> None:
    """Connect with the test, and run its source."""
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
    with Client(arguments[0], "AF_UNIX") as pipe:
        pipe.send((rank, os.getpid()))
        rank_process.main(pipe, *pipe.recv())  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1:])
