"""A process that has imported TensorFlow and from which others are forked: the side that asks for them.

This side is the parent of the forks: the process that forks one ends at once, and this side adopts the orphans among
its descendants (PR_SET_CHILD_SUBREAPER). So it waits for forks as for processes that it has started itself.
"""

from __future__ import annotations

import array
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Callable, Mapping, Sequence

from npu_shim._host.process_settings import decode_settings, encode_settings
from npu_shim.launching.fork_process import Answer, ForkRequest

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # of prctl
_POLL_INTERVAL_S, _END_INTERVAL_S = 0.05, 0.01
_INTERRUPTED_S = 0.25  # for what the process does on Ctrl-C, which it gets as well
_LAST_LINES = 3
# Runs before any other import, so that the process knows the modules of a new Python.
_CODE = (
    "import sys; before = set(sys.modules); sys.path.insert(0, {root!r}); "
    "from npu_shim.launching.fork_process import main; sys.path.remove({root!r}); main(before)"
)


class ForkServer:
    """The process that ranks or recorded runs are forked from. It imports TensorFlow while the caller goes on.

    Args:
        command: what the first fork runs: a script or ``-m`` and a module, and the arguments.
        environ: the environment variables of the import.
        progress: file descriptor of the pipe to the display; None without one.
        starts_session: False to stay in the process group of the caller, which gets the signals of the terminal,
            and of which the forks without a guardian are members.
    Raises:
        OSError: the process cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        progress: int | None = None,
        starts_session: bool = True,
    ) -> None:
        _prctl(_SET_SUBREAPER, True)
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        self._link, theirs = socket.socketpair()
        self._buffer = b""
        self._output = tempfile.TemporaryFile()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE.format(root=root), str(theirs.fileno()), *command],
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=starts_session,
                pass_fds=[fd for fd in (theirs.fileno(), progress) if fd is not None],
                preexec_fn=lambda: _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL),  # if the launcher is killed
            )

    def wait(self, stop: Callable[[], bool]) -> str | None:
        """Wait until the process has imported TensorFlow.

        Args:
            stop: returns True to stop waiting.
        Returns:
            Why it cannot be forked; None if it can, or if stop() returned True.
        """
        while not stop():
            if select.select([self._link], [], [], _POLL_INTERVAL_S)[0]:
                answer = self._receive()
                return self._last_lines() if answer is None else answer.problem
        return None

    def fork(
        self,
        name: str,
        command: Sequence[str],
        log: str,
        environ: Mapping[str, str],
        folder: str = "",
        cores: Sequence[int] = (),
        guardian: int | None = None,
    ) -> Forked:
        """Fork a process.

        Args:
            name: of the process, for a message in its log.
            command: a script or ``-m`` and a module, and the arguments.
            log: path of the file for its output, which is appended.
            environ: all its environment variables.
            folder: its current folder; that of this process when empty.
            cores: the processors that it may use; those of this process when empty.
            guardian: file descriptor of the pipe to the guardian of a process that leads a session; None for a member
                of the process group of this process.
        Returns:
            The fork, a child of this process.
        Raises:
            OSError: it cannot be forked.
        """
        asked = ForkRequest(name, [*command], os.path.abspath(log), {**environ}, os.path.abspath(folder), [*cores])
        request = encode_settings(asked).encode("ascii") + b"\n"
        descriptors = [] if guardian is None else [guardian]
        descriptor = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd])) for fd in descriptors]
        try:
            self._link.sendall(request[self._link.sendmsg([request], descriptor) :])
        except BrokenPipeError:
            raise OSError(self._last_lines()) from None
        answer = self._receive()
        if answer is None or answer.problem:
            raise OSError(self._last_lines() if answer is None else answer.problem)
        return Forked(answer.pid)

    def close(self) -> None:
        """End the process. Forks go on."""
        self._link.close()
        self._process.send_signal(signal.SIGKILL)  # it has nothing to clean up
        self._process.wait()
        self._output.close()
        _prctl(_SET_SUBREAPER, False)

    def _receive(self) -> Answer | None:
        """Return the next message, None if the process has ended."""
        while b"\n" not in self._buffer:
            new = self._link.recv(1 << 16)
            if not new:
                return None
            self._buffer += new
        line, _, self._buffer = self._buffer.partition(b"\n")
        return decode_settings(line.decode("ascii"), Answer)

    def _last_lines(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").split("\n")
        said = " ".join(line.strip() for line in lines[-_LAST_LINES:] if line.strip())
        return f"the process that imports TensorFlow has ended: {said or 'it printed nothing'}"


class Forked:
    """A process that was forked: as much of ``subprocess.Popen`` as its users need."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, -N if signal N ended it; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self._code

    def finish(self, timeout: float | None) -> int:
        """Wait for its end, as ``subprocess.run`` does, and return its exit code.

        Args:
            timeout: seconds until it is killed; None for no limit.
        Raises:
            subprocess.TimeoutExpired: it was killed.
        """
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while self.poll() is None:
                if end is not None and time.monotonic() > end:
                    raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0)
                time.sleep(_END_INTERVAL_S)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                time.sleep(_INTERRUPTED_S)
            if self.poll() is None:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            raise
        return self._code or 0


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process.

    Raises:
        OSError: the kernel does not support it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
