"""A rank while it runs: its process, all that it starts, and its log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from typing import Mapping

from npu_shim.launching.plan import RankProcess

_TRACEBACK = "Traceback (most recent call last):"
_MOST_LINES = 40


class Rank:
    """A started process.

    Args:
        process: what to start.
        environ: the launcher's variables.
        guardian: file number of the pipe to the guardian.
        header: first line of its part of the log; what it says follows from byte ``begin`` on.
    Raises:
        OSError: it cannot be started, or its log not be written.
    """

    def __init__(self, process: RankProcess, environ: Mapping[str, str], guardian: int, header: str) -> None:
        self.process = process
        with open(process.log, "ab") as log:
            log.write(header.encode("utf-8") + b"\n")
            log.flush()
            self.begin = log.tell()

            def before_it_runs() -> None:
                # In the child, which leads a session of its own: the guardian must know of it even if the launcher
                # is killed this very moment.
                os.write(guardian, b"+%d\n" % os.getpid())
                if process.cores:
                    os.sched_setaffinity(0, process.cores)

            self._popen = subprocess.Popen(
                process.command,
                env=process.full_environment(environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=before_it_runs,
            )
        self._guardian = guardian
        self.code: int | None = None

    @property
    def pid(self) -> int:
        """Of its first process."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Its exit code, 128 + N when signal N ended it; None while it runs.

        What it has started and left running ends with it.
        """
        if self.code is None:
            code = self._popen.poll()
            if code is None:
                return None
            self.code = code if code >= 0 else 128 - code
            self.send(signal.SIGKILL)
            try:
                os.write(self._guardian, b"-%d\n" % self.pid)
            except BrokenPipeError:  # somebody has killed the guardian, and nobody needs to know any more
                return self.code
        return self.code

    def send(self, number: int) -> None:
        """Signals its processes, those that it has started too."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:  # none is left
            return

    def output(self) -> str:
        """What it has said since it was started."""
        with open(self.process.log, "rb") as log:
            log.seek(self.begin)
            return log.read().decode("utf-8", "replace")

    def last_words(self) -> list[str]:
        """The traceback that it ended with, or else its last lines."""
        lines = self.output().rstrip().splitlines()
        starts = [index for index, line in enumerate(lines) if line.startswith(_TRACEBACK)]
        if starts:
            chosen = lines[_first_of_chain(lines, starts) :]
            if len(chosen) > _MOST_LINES:
                middle = f"  ... {len(chosen) - _MOST_LINES} lines ..."
                chosen = chosen[: _MOST_LINES // 4] + [middle] + chosen[-_MOST_LINES * 3 // 4 :]
            return chosen
        return lines[-10:]


def _first_of_chain(lines: list[str], starts: list[int]) -> int:
    """Where the last traceback begins, with those that it says it came from."""
    index = len(starts) - 1
    while index and re.match(
        r"(During handling of|The above exception was)",
        ([line for line in lines[starts[index - 1] : starts[index]] if line] or [""])[-1],
    ):
        index -= 1
    return starts[index]
