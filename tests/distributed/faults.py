"""Inject faults into jobs at random moments; check that nothing is left, nothing hangs, and training is unaffected.

    python tests/distributed/faults.py --number 200
    python tests/distributed/faults.py --number 1 --seed 17 -v      repeat one fault

Each job has 2 to 4 ranks under ``npu-shim launch``. A rank or the launcher is killed
or terminated, or a rank joins late or too late. After each fault: no process of the
job is left, the exit code is right, the job is started again unless its launcher
restarted it, its shared memory is removed, and every rank has the same weights, bit
by bit, as in a job without a fault.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Sequence

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from npu_shim.distributed.shm.job_directory import job_directory_path  # noqa: E402

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
MARK = "NPU_SHIM_FAULTS_MARK"
LIGHT, TENSORFLOW = "light_training.py", "checkpointed.py"
STEPS = {LIGHT: 150, TENSORFLOW: 60}
HANGS_S = 120.0  # no job takes as long
GONE_S = 30.0  # three times the maximum time of the guardian
ENVIRONMENT = {
    "NPU_SHIM_FALLBACK": "silent",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Kind(NamedTuple):
    """A kind of fault.

    Attributes:
        signal: the signal to send; None for a late rank.
        to_rank: True to send it to a rank, False for the launcher.
        restarts: maximum number of restarts by the launcher.
        code: the expected exit code.
        says: text that the launcher must print.
    """

    signal: signal.Signals | None
    to_rank: bool
    restarts: int
    code: int
    says: str


KINDS = {
    "rank killed, restarted": Kind(signal.SIGKILL, True, 1, 0, "was ended by SIGKILL"),
    "rank terminated, restarted": Kind(signal.SIGTERM, True, 1, 0, "was ended by SIGTERM"),
    "rank killed": Kind(signal.SIGKILL, True, 0, 137, "was ended by SIGKILL"),
    "rank terminated": Kind(signal.SIGTERM, True, 0, 143, "was ended by SIGTERM"),
    "launcher killed": Kind(signal.SIGKILL, False, 0, 137, ""),
    "launcher terminated": Kind(signal.SIGTERM, False, 0, 143, ""),
    "rank late": Kind(None, True, 0, 0, "ranks finished"),
    "rank too late": Kind(None, True, 0, 1, "failed with exit code 1"),
}
_LATE_S, _TOO_LATE_S, _CONNECT_S = 1.5, 60.0, 4


class Fault(NamedTuple):
    """A fault in a job."""

    seed: int
    kind: str
    script: str
    ranks: int
    rank: int  # the affected rank
    moment: float  # as a fraction of the duration of the job


class Problem(Exception):
    """A violated expectation."""


def draw(seed: int, script: str) -> Fault:
    """Return the fault of a seed."""
    chance = random.Random(seed)
    kinds = [kind for kind in KINDS if script == LIGHT or kind != "rank too late"]  # importing TensorFlow takes as long
    ranks = chance.choice((2, 3, 4) if script == LIGHT else (2,))
    return Fault(seed, chance.choice(kinds), script, ranks, chance.randrange(ranks), chance.uniform(0.05, 1.0))


class Launched:
    """A job in a folder, started by ``npu-shim launch``."""

    def __init__(
        self, fault: Fault, folder: pathlib.Path, restarts: int = 0, late: Sequence[str] = (), **more: str
    ) -> None:
        self.mark = folder.name
        self._said = folder / "said"
        command = [
            sys.executable,
            "-m",
            "npu_shim",
            "launch",
            "--ranks",
            str(fault.ranks),
            "--log-dir",
            str(folder / "logs"),
            "--job-id",
            folder.name,
            "--max-restarts",
            str(restarts),
            str(SCRIPTS / fault.script),
            str(folder),
            str(STEPS[fault.script]),
            *late,
        ]
        environ = {**os.environ, **ENVIRONMENT, MARK: self.mark, "PYTHONPATH": str(ROOT), **more}
        self.begin = time.monotonic()
        with open(str(self._said), "wb") as stream:
            self.process = subprocess.Popen(command, env=environ, stdout=stream, stderr=subprocess.STDOUT)

    def said(self) -> str:
        """Return the output of the launcher and the first rank."""
        return self._said.read_text(errors="replace")

    def processes(self) -> dict[int, str]:
        """Return the processes of the job except the launcher, each with the name of the log that it writes to.

        A forked rank shows the variables of the process that it was forked from, without its own RANK_ID.
        """
        found: dict[int, str] = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                environ = pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0")
                output = os.path.basename(os.readlink(f"/proc/{name}/fd/1"))
                dead = pathlib.Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:  # it has ended, or belongs to another user
                continue
            if f"{MARK}={self.mark}".encode() in environ and not dead and int(name) != self.process.pid:
                found[int(name)] = output
        return found

    def rank(self, rank: int) -> int | None:
        """Wait for the process of a rank and return it; None if the job is over."""
        while self.process.poll() is None:
            for process, output in self.processes().items():
                if output == f"rank_{rank}.log":
                    return process
            time.sleep(0.005)
        return None

    def ended(self) -> int:
        """Wait for the launcher; return its exit code as in a shell."""
        try:
            code = self.process.wait(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            raise Problem(f"it hangs:\n{self.said()[-2000:]}") from None
        return code if code >= 0 else 128 - code

    def wait_until_gone(self) -> None:
        """Wait until no process of the job is left, which takes a while after the launcher was killed."""
        deadline = time.monotonic() + GONE_S
        left = self.processes()
        while left and time.monotonic() < deadline:
            time.sleep(0.02)
            left = self.processes()
        if left:
            raise Problem(f"left after {GONE_S:g} s: {left}")

    def wipe(self) -> None:
        """Kill all processes of the job."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue


class Runner:
    """Runs faults, and one job without a fault for each script and number of ranks."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._undisturbed: dict[tuple[str, int], tuple[list[bytes], float]] = {}
        self._lock = threading.Lock()

    def run(self, fault: Fault) -> int:
        """Run a fault.

        Returns:
            How often the job was over before the fault, so it was repeated.
        Raises:
            Problem: an expectation was violated.
        """
        wanted, takes_s = self._reference(fault)
        for missed in range(8):
            folder = pathlib.Path(tempfile.mkdtemp(prefix=f"fault_{fault.seed}_", dir=str(self._folder)))
            if self._disturb(fault, folder, takes_s * fault.moment * 0.7**missed):
                break
        else:
            raise Problem("the job was always over before the fault came")
        if KINDS[fault.kind].code:
            self._undisturbed_run(fault, folder)
        self._check_end(fault, folder, wanted)
        shutil.rmtree(str(folder))
        return missed

    def _disturb(self, fault: Fault, folder: pathlib.Path, after_s: float) -> bool:
        """Run the job with its fault; return False if the job was over before."""
        kind = KINDS[fault.kind]
        late: Sequence[str] = ()
        more: dict[str, str] = {}
        if kind.signal is None:
            late = str(fault.rank), str(_LATE_S * fault.moment if not kind.code else _TOO_LATE_S)
            more = {"HCCL_CONNECT_TIMEOUT": str(_CONNECT_S)} if kind.code else {}
        if not kind.to_rank:
            more = {"LINGER_SECONDS": str(4 * GONE_S)}  # so that orphaned ranks are found
        job = Launched(fault, folder, kind.restarts, late, **more)
        try:
            if kind.signal is not None:
                time.sleep(after_s)
                target = job.rank(fault.rank) if kind.to_rank else job.process.pid
                if target is None or job.process.poll() is not None:
                    return False
                try:
                    os.kill(target, kind.signal)
                except ProcessLookupError:
                    return False
            code = job.ended()
            job.wait_until_gone()
            if kind.signal is not None and code == 0 and kind.says not in job.said():
                return False
            if code != kind.code or kind.says not in job.said():
                raise Problem(f"exit code {code}, and {kind.code} with {kind.says!r} is right:\n{job.said()[-2000:]}")
            if kind.code == 1 and f"rank {fault.rank} did not join within" not in job.said() + self._logs(folder):
                raise Problem(f"nobody says that rank {fault.rank} did not join:\n{job.said()[-2000:]}")
            return True
        finally:
            job.wipe()

    def _reference(self, fault: Fault) -> tuple[list[bytes], float]:
        """Return the weights of a job without a fault, and its duration."""
        with self._lock:
            key = fault.script, fault.ranks
            if key not in self._undisturbed:
                folder = pathlib.Path(tempfile.mkdtemp(prefix="undisturbed_", dir=str(self._folder)))
                takes_s = self._undisturbed_run(fault, folder)
                self._undisturbed[key] = (
                    [(folder / f"end_{rank}.npy").read_bytes() for rank in range(fault.ranks)],
                    takes_s,
                )
            return self._undisturbed[key]

    def _undisturbed_run(self, fault: Fault, folder: pathlib.Path) -> float:
        """Run the job, or the rest of it, to its end; return the duration."""
        job = Launched(fault, folder)
        try:
            code = job.ended()
            takes_s = time.monotonic() - job.begin
            job.wait_until_gone()
        finally:
            job.wipe()
        if code:
            raise Problem(f"exit code {code} of a job that nobody has disturbed:\n{job.said()[-2000:]}")
        return takes_s

    @staticmethod
    def _check_end(fault: Fault, folder: pathlib.Path, wanted: Sequence[bytes]) -> None:
        for rank in range(fault.ranks):
            found = folder / f"end_{rank}.npy"
            if found.read_bytes() != wanted[rank]:
                here, there = (
                    np.load(str(found)),
                    np.frombuffer(wanted[rank][-np.load(str(found)).nbytes :], np.load(str(found)).dtype),
                )
                raise Problem(f"rank {rank} has other weights in the end, by up to {np.abs(here - there).max()}")
        if os.path.exists(job_directory_path(folder.name)):
            raise Problem(
                f"{job_directory_path(folder.name)} is left, with {os.listdir(job_directory_path(folder.name))}"
            )

    @staticmethod
    def _logs(folder: pathlib.Path) -> str:
        return "".join(log.read_text(errors="replace") for log in (folder / "logs").iterdir())


class Report(NamedTuple):
    """The results of some faults."""

    done: collections.Counter[str]
    missed: int
    problems: list[str]

    def __str__(self) -> str:
        lines = [f"{count:5d}  {kind}" for kind, count in sorted(self.done.items())]
        return "\n".join(
            lines
            + [
                f"{sum(self.done.values()):5d}  faults, {len(self.problems)} with problems; {self.missed} "
                "came when the job was over, and were tried again"
            ]
            + self.problems
        )


def run(number: int, seed: int, with_tensorflow: int, at_once: int = 2, verbose: bool = False) -> Report:
    """Run faults.

    Args:
        number: number of faults.
        seed: of the first; the others follow.
        with_tensorflow: number of jobs that train with TensorFlow.
        at_once: number of jobs at the same time.
        verbose: True to print each fault.
    """
    report = Report(collections.Counter(), 0, [])
    every = number / with_tensorflow if with_tensorflow else float("inf")
    chosen: set[int] = {int(index * every) for index in range(with_tensorflow)}
    faults = [draw(seed + index, TENSORFLOW if index in chosen else LIGHT) for index in range(number)]
    missed: list[int] = []

    def one(fault: Fault) -> None:
        begin = time.monotonic()
        try:
            missed.append(runner.run(fault))
            said = "well"
        except Problem as problem:
            said = str(problem)
            report.problems.append(f"{fault}: {said}")
        report.done[fault.kind] += 1
        if verbose:
            print(f"{fault}: {time.monotonic() - begin:.1f} s, " + said.split("\n")[0], flush=True)

    with tempfile.TemporaryDirectory(prefix="npu_shim_faults_") as folder, ThreadPoolExecutor(at_once) as pool:
        runner = Runner(pathlib.Path(folder))
        list(pool.map(one, faults))
    return report._replace(missed=sum(missed))


def main(argv: Sequence[str]) -> int:
    """Run faults and print the results; return 0 if there is no problem."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--number", type=int, default=20, help="number of faults")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first fault")
    parser.add_argument(
        "--with-tensorflow", type=int, metavar="N", help="number of jobs that train with TensorFlow; by default a fifth"
    )
    parser.add_argument("--at-once", type=int, default=2, help="number of jobs at the same time")
    parser.add_argument("-v", action="store_true", help="print each fault")
    args = parser.parse_args(argv)
    with_tensorflow = args.number // 5 if args.with_tensorflow is None else args.with_tensorflow
    report = run(args.number, args.seed, with_tensorflow, args.at_once, args.v)
    print(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
