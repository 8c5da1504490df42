"""Disturbs jobs at random moments, and looks that nothing is left, nothing hangs, and training comes to the same end.

    python tests/distributed/faults.py --number 200
    python tests/distributed/faults.py --number 1 --seed 17 -v      that one again

Each job is 2 to 4 ranks under ``npu-shim launch``. A rank or the launcher is
killed or asked to end, or a rank comes late or too late. After each fault: no
process of the job is left, the exit code is the right one, a job that was not
restarted by its launcher is started again, its shared memory is gone, and the
weights of every rank are, bit by bit, those of a job that was not disturbed.
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

from npu_shim.distributed.shm.job_directory import job_directory  # noqa: E402

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
MARK = "NPU_SHIM_FAULTS_MARK"
LIGHT, TENSORFLOW = "light_training.py", "checkpointed.py"
STEPS = {LIGHT: 150, TENSORFLOW: 60}
HANGS_S = 120.0  # a job that takes longer, which all of it never does
GONE_S = 30.0  # three times what the guardian takes at the most to end what a killed launcher leaves
ENVIRONMENT = {
    "NPU_SHIM_FALLBACK": "silent",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Kind(NamedTuple):
    """What is done to a job.

    Attributes:
        signal: that is sent; None where a rank comes late.
        to_rank: whether a rank gets it, or else the launcher.
        restarts: how often the launcher may start all ranks again.
        code: the exit code that is right.
        says: what the launcher has to say.
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
    """A fault of a job."""

    seed: int
    kind: str
    script: str
    ranks: int
    rank: int  # that is hit, or late
    moment: float  # of the time that the job takes, from 0 to 1


class Problem(Exception):
    """Something that must not be."""


def draw(seed: int, script: str) -> Fault:
    """The fault of a seed."""
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
        """What the launcher and the first rank have said."""
        return self._said.read_text(errors="replace")

    def processes(self) -> dict[int, str]:
        """By process what a rank is told to be ('' for others) of all that carries the mark, but the launcher."""
        found: dict[int, str] = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                environ = pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0")
                dead = pathlib.Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:  # it has ended since, or is not ours
                continue
            if f"{MARK}={self.mark}".encode() in environ and not dead and int(name) != self.process.pid:
                ranks = [entry[8:].decode() for entry in environ if entry.startswith(b"RANK_ID=")]
                found[int(name)] = ranks[0] if ranks else ""
        return found

    def rank(self, rank: int) -> int | None:
        """The process of a rank, for which it waits; None when the job is over."""
        while self.process.poll() is None:
            for process, told in self.processes().items():
                if told == str(rank):
                    return process
            time.sleep(0.005)
        return None

    def ended(self) -> int:
        """Waits for the launcher: its exit code as a shell has it."""
        try:
            code = self.process.wait(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            raise Problem(f"it hangs:\n{self.said()[-2000:]}") from None
        return code if code >= 0 else 128 - code

    def gone(self) -> None:
        """Waits until no process of the job is left, which after a launcher that was killed takes a while."""
        deadline = time.monotonic() + GONE_S
        left = self.processes()
        while left and time.monotonic() < deadline:
            time.sleep(0.02)
            left = self.processes()
        if left:
            raise Problem(f"left after {GONE_S:g} s: {left}")

    def wipe(self) -> None:
        """Kills all of it, whatever has gone wrong."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue


class Runner:
    """Runs faults; jobs that nobody disturbs are run once for each script and number of ranks."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._undisturbed: dict[tuple[str, int], tuple[list[bytes], float]] = {}
        self._lock = threading.Lock()

    def run(self, fault: Fault) -> int:
        """Runs a fault.

        Returns:
            How often it came too late for the job, and was tried again.
        Raises:
            Problem: what was wrong.
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
        """Runs the job with its fault; False when it was over before."""
        kind = KINDS[fault.kind]
        late: Sequence[str] = ()
        more: dict[str, str] = {}
        if kind.signal is None:
            late = str(fault.rank), str(_LATE_S * fault.moment if not kind.code else _TOO_LATE_S)
            more = {"HCCL_CONNECT_TIMEOUT": str(_CONNECT_S)} if kind.code else {}
        if not kind.to_rank:
            more = {"LINGER_SECONDS": str(4 * GONE_S)}  # ranks that nobody ends shall be seen
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
            job.gone()
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
        """What a job that nobody disturbs comes to, and how long it takes."""
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
        """Runs the job, or what is left of it, to its end: how long that takes."""
        job = Launched(fault, folder)
        try:
            code = job.ended()
            takes_s = time.monotonic() - job.begin
            job.gone()
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
        if os.path.exists(job_directory(folder.name)):
            raise Problem(f"{job_directory(folder.name)} is left, with {os.listdir(job_directory(folder.name))}")

    @staticmethod
    def _logs(folder: pathlib.Path) -> str:
        return "".join(log.read_text(errors="replace") for log in (folder / "logs").iterdir())


class Report(NamedTuple):
    """What became of some faults."""

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
    """Runs faults.

    Args:
        number: how many.
        seed: of the first; the others follow.
        with_tensorflow: how many of them train with TensorFlow.
        at_once: how many jobs run at the same time.
        verbose: whether to print each.
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
    """Runs faults and says what became of them: 0 when all was well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--number", type=int, default=20, help="how many faults")
    parser.add_argument("--seed", type=int, default=1, help="of the first")
    parser.add_argument(
        "--with-tensorflow", type=int, metavar="N", help="how many of them train with TensorFlow; by default a fifth"
    )
    parser.add_argument("--at-once", type=int, default=2, help="how many jobs run at the same time")
    parser.add_argument("-v", action="store_true", help="tell of each")
    args = parser.parse_args(argv)
    with_tensorflow = args.number // 5 if args.with_tensorflow is None else args.with_tensorflow
    report = run(args.number, args.seed, with_tensorflow, args.at_once, args.v)
    print(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
