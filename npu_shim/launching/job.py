"""Run the ranks of a job: all succeed, or the launcher ends them all."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, Callable, Iterator, Mapping, Sequence

from npu_shim.launching import failure, guardian
from npu_shim.launching.follow import ALL, FIRST, Follower, line_prefix_of_rank
from npu_shim.launching.fork_server import ForkServer
from npu_shim.launching.plan import RankProcess
from npu_shim.launching.progress.display import Display
from npu_shim.launching.rank import Rank

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
FORWARDED_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)
TIMED_OUT, NOT_STARTED = 124, 126  # as in the timeout command and the shell
_POLL_INTERVAL_S = 0.05
_GRACE_S = 10.0  # between terminating and killing a rank
RESTART_VARIABLE = "NPU_SHIM_RESTART"


@dataclass
class Job:
    """The ranks of this host.

    Args:
        processes: the processes to start.
        report: prints a line for the user.
        output: receives the output of the first rank, or of all, in addition to their logs.
        variables: the environment variables of the launcher.
        shown_ranks: "first", or "all" for each line of all ranks with the number of its rank.
        timeout: seconds for the job, restarts included; None for no limit.
        max_restarts: maximum number of restarts after a rank has failed.
        display: shows the progress of the ranks; None if nobody wants it.
        preload: environment variables with which a process imports TensorFlow, from which the ranks are forked; None
            to start each rank as a new Python.
    """

    processes: Sequence[RankProcess]
    report: Callable[[str], None]
    output: BinaryIO
    variables: Mapping[str, str]
    timeout: float | None = None
    max_restarts: int = 0
    display: Display | None = None
    preload: Mapping[str, str] | None = None
    shown_ranks: str = FIRST
    _begin: float = field(init=False, default_factory=time.monotonic)
    _signals: list[int] = field(init=False, default_factory=list)
    _ranks: list[Rank] = field(init=False, default_factory=list)
    _followers: list[Follower] = field(init=False, default_factory=list)

    def run(self) -> int:
        """Run the job.

        Returns:
            0 if all ranks exit with 0. Otherwise the exit code of the first rank that failed (128 + N if signal N
            ended it), 128 + N if signal N ended the job, or 124 after a timeout.
        """
        try:
            with self._collect_signals(), self._start_fork_server() as fork_server:
                for restarts in range(self.max_restarts + 1):
                    with _running_guardian() as pipe:
                        code, again = self._run_ranks_once(restarts, pipe, fork_server)
                    if not again or restarts == self.max_restarts:
                        break
                    self.report(
                        f"restarting all {len(self.processes)} ranks, restart {restarts + 1} of {self.max_restarts}; "
                        "training continues from the last checkpoint if the script restores it"
                    )
        finally:
            if self.display is not None:
                self.display.end()
        return code

    @contextmanager
    def _start_fork_server(self) -> Iterator[ForkServer | None]:
        """Yield the process that ranks are forked from; None if they start as new processes."""
        if self.preload is None:
            yield None
            return
        try:
            progress = None if self.display is None else self.display.pipe
            server = ForkServer(self.processes[0].command[1:], self.preload, progress)
        except (OSError, subprocess.SubprocessError) as error:
            self.report(f"ranks start as plain processes: {error}")
            yield None
            return
        try:
            problem = server.wait(self._is_over)
            if problem:
                self.report(f"ranks start as plain processes: {problem}")
            yield None if problem else server
        finally:
            server.close()

    def _is_over(self) -> bool:
        """Return True if a signal or the time limit ends the job."""
        is_late = self.timeout is not None and time.monotonic() - self._begin > self.timeout
        return is_late or any(number in ENDING_SIGNALS for number in self._signals)

    def _run_ranks_once(self, restarts: int, pipe: int, fork_server: ForkServer | None) -> tuple[int, bool]:
        """Start all ranks and wait for them. Return the exit code, and True if a restart may help."""
        environ = {**self.variables, RESTART_VARIABLE: str(restarts)}
        self._ranks = []
        if fork_server is not None and self._is_over():
            return self._report_early_end(), False
        progress = None if self.display is None else self.display.pipe
        try:
            for process in self.processes:
                header = (
                    f"== {process.name or _ranks_text([process.rank])} of job {process.environment['JOB_ID']}, "
                    f"{time.strftime('%Y-%m-%d %H:%M:%S')}" + (f", restart {restarts}" if restarts else "")
                )
                self._ranks.append(Rank(process, environ, pipe, header, progress, fork_server))
            self._followers = self._make_followers()
            try:
                return self._watch_ranks()
            finally:
                for follower in self._followers:
                    follower.finish()
        except (OSError, subprocess.SubprocessError) as error:
            self.report(f"rank {process.rank} cannot start: {error}")
            return NOT_STARTED, False
        finally:
            self._end_all(signal.SIGTERM)

    def _make_followers(self) -> list[Follower]:
        """Return what shows the output of the ranks. mpirun is one process, which prefixes the lines of its ranks."""
        if self.shown_ranks == ALL and not self._ranks[0].process.name:
            shown = [(rank, line_prefix_of_rank(rank.process.rank)) for rank in self._ranks]
        else:
            shown = [(self._ranks[0], "")]
        return [Follower(rank.process.log, rank.begin, self.output, prefix) for rank, prefix in shown]

    def _copy_output(self) -> None:
        for follower in self._followers:
            follower.copy()

    def _report_early_end(self) -> int:
        """Report the end of a job before its ranks have started. Return the exit code."""
        number = next((received for received in self._signals if received in ENDING_SIGNALS), None)
        how = f"timeout after {self.timeout:g} s (--timeout)" if number is None else signal.Signals(number).name
        self.report(f"{how}: the ranks have not started")
        return TIMED_OUT if number is None else 128 + number

    def _watch_ranks(self) -> tuple[int, bool]:
        while True:
            self._copy_output()
            if self._signals:
                number: int = self._signals.pop(0)
                if number in FORWARDED_SIGNALS:
                    for rank in self._ranks:
                        rank.send(number)
                    continue
                self.report(f"{signal.Signals(number).name}: forwarding it to all ranks")
                self._end_all(number)
                self._copy_output()
                return 128 + number, False
            codes = [rank.poll() for rank in self._ranks]
            if any(codes):
                # Poll again: the rank that caused this failure may have ended just before.
                failed = [rank for rank in self._ranks if rank.poll()]
                # Of several failures, a rank that a signal ended is the cause: the others lost it.
                first = self._first_failed_rank(
                    max(failed, key=lambda rank: bool(failure.signal_name((rank.code or 0) - 128)))
                )
                self._copy_output()
                self._report_failure(first)
                self._end_all(signal.SIGTERM)
                self._copy_output()
                # mpirun may end with a code of its own
                reported = failure.reported_code(first.output()) if first.process.name else None
                return reported or first.code or 1, True
            if all(code == 0 for code in codes):
                self._copy_output()
                process = self._ranks[0].process
                lost = failure.unfinished_ranks(self._ranks[0].output(), process.starts)
                if lost:
                    seconds = time.monotonic() - self._begin
                    self.report(
                        f"{process.name} ended after {seconds:.0f} s, but {_ranks_text(lost)} did not finish. "
                        f"Its log is {process.log}"
                    )
                return int(bool(lost)), bool(lost)
            if self.timeout is not None and time.monotonic() - self._begin > self.timeout:
                left = [rank.process.rank for rank in self._ranks if rank.poll() is None]
                self.report(f"timeout after {self.timeout:g} s (--timeout): ending {_ranks_text(left)}")
                self._end_all(signal.SIGTERM)
                self._copy_output()
                return TIMED_OUT, False
            time.sleep(_POLL_INTERVAL_S)

    def _first_failed_rank(self, failed: Rank) -> Rank:
        """Return the rank whose failure is the cause of another's, which may still be ending."""
        deadline = time.monotonic() + failure.CAUSE_WAIT_S
        seen = [failed]
        while True:
            number = failure.lost_rank(seen[-1].output())
            lost = next((rank for rank in self._ranks if rank.process.rank == number and rank not in seen), None)
            while lost and lost.poll() is None and time.monotonic() < deadline and not self._signals:
                time.sleep(_POLL_INTERVAL_S)
            if not lost or not lost.poll():  # it runs on, or its script has finished
                return seen[-1]
            seen.append(lost)

    def _report_failure(self, rank: Rank) -> None:
        code = rank.code or 0
        others = [r.process.rank for r in self._ranks if r.poll() is None]
        output = rank.output()
        lines = failure.failure_lines(output)
        # mpirun has shown what its ranks report
        shown = (
            bool(rank.process.name)
            or (rank is self._ranks[0] or self.shown_ranks == ALL)
            and output.rstrip().endswith("\n".join(lines))
        )  # and nothing was left out
        self.report(
            f"{rank.process.name or _ranks_text([rank.process.rank])} {failure.ending_text(code)} after "
            f"{time.monotonic() - self._begin:.0f} s"
            + (f"; ending {_ranks_text(others)}" if others else "")
            + f". Its log is {rank.process.log}"
            + ("" if shown else " and ends with:")
        )
        advice = [] if rank.process.name else failure.advice_lines(output)
        for line in [*([] if shown else lines), *advice]:
            self.report("  " + line)

    def _end_all(self, number: int) -> None:
        """Terminate the running ranks, and kill them after a while, or at once after another signal."""
        left = [rank for rank in self._ranks if rank.poll() is None]
        for rank in left:
            rank.send(number)
        deadline = time.monotonic() + _GRACE_S
        while left and time.monotonic() < deadline and not any(s in ENDING_SIGNALS for s in self._signals):
            time.sleep(_POLL_INTERVAL_S)
            left = [rank for rank in left if rank.poll() is None]
        if left:
            self.report(
                f"{_ranks_text([rank.process.rank for rank in left])} did not end and "
                f"{'are' if len(left) > 1 else 'is'} killed"
            )
        for rank in left:
            rank.send(signal.SIGKILL)
        while any(rank.poll() is None for rank in left):
            time.sleep(_POLL_INTERVAL_S)

    @contextmanager
    def _collect_signals(self) -> Iterator[None]:
        """Collect signals for the loop of the job, instead of letting them end the launcher."""
        old: dict[int, object] = {}
        for collected in ENDING_SIGNALS + FORWARDED_SIGNALS:
            # under nohup, a hangup must not end the job
            if signal.getsignal(collected) is not signal.SIG_IGN:
                old[collected] = signal.signal(collected, lambda number, frame: self._signals.append(number))
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)  # type: ignore[arg-type]


@contextmanager
def _running_guardian() -> Iterator[int]:
    """Run a guardian, and yield the file descriptor of the pipe to it."""
    process = subprocess.Popen(
        [sys.executable, "-I", guardian.__file__],
        stdin=subprocess.PIPE,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    try:
        yield process.stdin.fileno()
    finally:
        process.stdin.close()
        process.wait()


def _ranks_text(numbers: Sequence[int]) -> str:
    return ("rank " if len(numbers) == 1 else "ranks ") + ", ".join(map(str, numbers))
