"""A running rank: its processes and its log."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Mapping

from npu_shim.launching import cores
from npu_shim.launching.fork_server import Forked, ForkServer
from npu_shim.launching.plan import RankProcess
from npu_shim.launching.progress.status import PIPE_VARIABLE, Status, encode, send


class Rank:
    """A started process.

    Args:
        process: the process to start.
        environ: the variables of the launcher.
        guardian: file descriptor of the pipe to the guardian.
        header: first line of this run in the log; the output starts at byte ``begin``.
        progress: file descriptor of the pipe to the display; None without one.
        fork_server: forks the process; None to start a new Python.
    Raises:
        OSError: the process cannot be started, or its log cannot be written.
    """

    def __init__(
        self,
        process: RankProcess,
        environ: Mapping[str, str],
        guardian: int,
        header: str,
        progress: int | None = None,
        fork_server: ForkServer | None = None,
    ) -> None:
        self.process = process
        with open(process.log, "ab") as log:
            log.write(header.encode("utf-8") + b"\n")
            log.flush()
            self.begin = log.tell()

            def prepare_child() -> None:
                # Runs in the child, which leads its own session. The guardian must know the group even if the launcher
                # is killed at this moment.
                os.write(guardian, b"+%d\n" % os.getpid())
                cores.bind_process(process.share)

            variables = process.full_environment(environ)
            if progress is not None:
                variables[PIPE_VARIABLE] = str(progress)
            self._process: subprocess.Popen[bytes] | Forked
            if fork_server is not None:
                self._process = fork_server.fork(
                    "this rank",
                    process.command[1:],
                    process.log,
                    variables,
                    cores=process.share.cores,
                    guardian=guardian,
                )
            else:
                self._process = subprocess.Popen(
                    process.command,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=() if progress is None else (progress,),
                    preexec_fn=prepare_child,
                )
        self._guardian, self._progress = guardian, progress
        self.code: int | None = None

    @property
    def pid(self) -> int:
        """Return the id of its first process."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return its exit code, 128 + N if signal N ended it; None while it runs.

        Processes that it has started and that still run are killed.
        """
        if self.code is None:
            code = self._process.poll()
            if code is None:
                return None
            self.code = code if code >= 0 else 128 - code
            self.send(signal.SIGKILL)
            if self._progress is not None:
                send(self._progress, encode(Status(self.process.rank, code=self.code)))
            try:
                os.write(self._guardian, b"-%d\n" % self.pid)
            except BrokenPipeError:  # the guardian was killed
                return self.code
        return self.code

    def send(self, number: int) -> None:
        """Send a signal to its processes, including those that it has started."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:  # all have ended
            return

    def output(self) -> str:
        """Return its output since it was started."""
        with open(self.process.log, "rb") as log:
            log.seek(self.begin)
            return log.read().decode("utf-8", "replace")
