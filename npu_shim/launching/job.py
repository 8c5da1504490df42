"""Runs the ranks of a job together: all end well, or all are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import BinaryIO, Callable, Iterator, Mapping, Sequence

from npu_shim.launching import guardian
from npu_shim.launching.follow import Follower
from npu_shim.launching.plan import RankProcess
from npu_shim.launching.rank import Rank

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2)
TIMED_OUT, NOT_STARTED = 124, 126  # as the command timeout and the shell have it
_POLL_SECONDS = 0.05
RESTART_VARIABLE = "NPU_SHIM_RESTART"


class Job:
    """The ranks of this host.

    Args:
        processes: what to start.
        say: takes a line for the user.
        output: where what the first of them says goes, besides its log.
        timeout: seconds for all of it, restarts included; none for no limit.
        max_restarts: how often all are started again after one has failed.
        grace: seconds between asking a rank to end and making it.
        environ: the launcher's variables.
    """

    def __init__(
        self,
        processes: Sequence[RankProcess],
        say: Callable[[str], None],
        output: BinaryIO,
        timeout: float | None = None,
        max_restarts: int = 0,
        grace: float = 10.0,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._processes = processes
        self._say = say
        self._output = output
        self._max_restarts = max_restarts
        self._grace = grace
        self._environ = environ
        self._timeout = timeout
        self._begin = time.monotonic()
        self._signals: list[int] = []
        self._ranks: list[Rank] = []

    def run(self) -> int:
        """Runs the job.

        Returns:
            0 when all ranks ended with 0. Else the code of the rank that failed first (128 + N when signal N ended
            it), 128 + N when signal N ended the job, 124 when its time was up.
        """
        with self._signals_kept():
            for restarts in range(self._max_restarts + 1):
                with _guarded() as pipe:
                    code, again = self._once(restarts, pipe)
                if not again or restarts == self._max_restarts:
                    break
                self._say(
                    f"starting all {len(self._processes)} ranks again, restart {restarts + 1} of "
                    f"{self._max_restarts}; they go on from their last checkpoint if the script restores it"
                )
        return code

    def _once(self, restarts: int, pipe: int) -> tuple[int, bool]:
        """Starts all ranks and waits for their end: the exit code, and whether another try could help."""
        environ = {**self._environ, RESTART_VARIABLE: str(restarts)}
        self._ranks = []
        try:
            for process in self._processes:
                header = (
                    f"== rank {process.rank} of job {process.environment['JOB_ID']}, "
                    f"{time.strftime('%Y-%m-%d %H:%M:%S')}" + (f", restart {restarts}" if restarts else "")
                )
                self._ranks.append(Rank(process, environ, pipe, header))
            return self._watch(Follower(self._ranks[0].process.log, self._ranks[0].begin, self._output))
        except (OSError, subprocess.SubprocessError) as error:
            self._say(f"rank {process.rank} cannot be started: {error}")
            return NOT_STARTED, False
        finally:
            self._end_all(signal.SIGTERM)

    def _watch(self, follower: Follower) -> tuple[int, bool]:
        while True:
            follower.copy()
            if self._signals:
                number: int = self._signals.pop(0)
                if number in PASSED_ON:
                    for rank in self._ranks:
                        rank.send(number)
                    continue
                self._say(f"{signal.Signals(number).name}: passing it to all ranks")
                self._end_all(number)
                follower.copy()
                return 128 + number, False
            codes = [rank.poll() for rank in self._ranks]
            if any(codes):
                # Once more: whom the one that was seen to fail has missed has ended before it.
                failed = [rank for rank in self._ranks if rank.poll()]
                # Of several at once, one that a signal ended is the cause: the others miss it.
                first = max(failed, key=lambda rank: bool(_signal_name((rank.code or 0) - 128)))
                follower.copy()
                self._report(first)
                self._end_all(signal.SIGTERM)
                follower.copy()
                return first.code or 1, True
            if all(code == 0 for code in codes):
                follower.copy()
                return 0, False
            if self._timeout is not None and time.monotonic() - self._begin > self._timeout:
                left = [rank.process.rank for rank in self._ranks if rank.poll() is None]
                self._say(f"time is up after {self._timeout:g} s (--timeout): ending {_ranks(left)}, which still run")
                self._end_all(signal.SIGTERM)
                follower.copy()
                return TIMED_OUT, False
            time.sleep(_POLL_SECONDS)

    def _report(self, rank: Rank) -> None:
        code = rank.code or 0
        how = (
            f"was ended by {_signal_name(code - 128)}" if _signal_name(code - 128) else f"failed with exit code {code}"
        )
        others = [r.process.rank for r in self._ranks if r.poll() is None]
        shown = rank is self._ranks[0]  # what it said stands above
        self._say(
            f"rank {rank.process.rank} {how} after {time.monotonic() - self._begin:.0f} s"
            + (f"; ending {_ranks(others)}" if others else "")
            + f". Its log is {rank.process.log}"
            + ("" if shown else " and ends with:")
        )
        for line in [] if shown else rank.last_words():
            self._say("  " + line)

    def _end_all(self, number: int) -> None:
        """Asks what still runs to end, and makes it after a while, or at once when another signal comes."""
        left = [rank for rank in self._ranks if rank.poll() is None]
        for rank in left:
            rank.send(number)
        deadline = time.monotonic() + self._grace
        while left and time.monotonic() < deadline and not any(s in ENDING for s in self._signals):
            time.sleep(_POLL_SECONDS)
            left = [rank for rank in left if rank.poll() is None]
        if left:
            self._say(
                f"{_ranks([rank.process.rank for rank in left])} did not end and "
                f"{'are' if len(left) > 1 else 'is'} killed"
            )
        for rank in left:
            rank.send(signal.SIGKILL)
        while any(rank.poll() is None for rank in left):
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def _signals_kept(self) -> Iterator[None]:
        """While the job runs, signals are kept for its loop instead of ending the launcher."""
        old: dict[int, object] = {}
        for kept in ENDING + PASSED_ON:
            # who starts the launcher with nohup means that a hangup shall end nothing
            if signal.getsignal(kept) is not signal.SIG_IGN:
                old[kept] = signal.signal(kept, lambda got, frame: self._signals.append(got))
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)  # type: ignore[arg-type]


@contextmanager
def _guarded() -> Iterator[int]:
    """A guardian; gives the file number of the pipe to it."""
    watching = subprocess.Popen(
        [sys.executable, "-I", guardian.__file__],
        stdin=subprocess.PIPE,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    assert watching.stdin is not None
    try:
        yield watching.stdin.fileno()
    finally:
        watching.stdin.close()
        watching.wait()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def _ranks(numbers: Sequence[int]) -> str:
    return ("rank " if len(numbers) == 1 else "ranks ") + ", ".join(map(str, numbers))
