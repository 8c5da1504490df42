"""The process that shows the progress of ranks.

It ends with the process that it belongs to, and restores the terminal.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import time
import traceback
from dataclasses import replace

from npu_shim._host import host_env
from npu_shim.launching.progress import board
from npu_shim.launching.progress.region import Region
from npu_shim.launching.progress.status import Status, decode, send

DRAW_INTERVAL_S, PRINT_INTERVAL_S = 0.5, 10.0
_END = b"end\n"
_END_TIMEOUT_S = 3.0


class Display:
    """A display in a process of its own; ranks write to ``pipe``.

    The process is neither a child nor in the session of this one: a script that waits for its children does not find
    it, and no signal of the terminal ends it.

    Args:
        command: begins each line that is printed to a pipe: ``npu-shim launch``.
        stream: file descriptor of the terminal or the pipe.
    """

    def __init__(self, command: str, stream: int = 2) -> None:
        read, self.pipe = os.pipe()
        self._done, done = os.pipe()
        for stream_to_flush in (sys.stdout, sys.stderr):
            stream_to_flush.flush()
        self._owner = owner = os.getpid()
        child = os.fork()
        if child:
            os.close(read)
            os.close(done)
            os.waitpid(child, 0)
            os.set_blocking(self.pipe, False)
            return
        try:
            os.setsid()
            if not os.fork():
                os.close(self.pipe)
                os.close(self._done)
                stream = os.dup(stream)
                for number in (0, 1):  # the reader of the script's output must see its end
                    os.dup2(os.open(os.devnull, os.O_RDWR), number)
                _Drawing(command, stream, owner, read).run()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)

    def end(self) -> None:
        """Print the last status of each rank, and give the terminal back."""
        if self.pipe < 0 or os.getpid() != self._owner:  # a forked child of it ends nothing
            return
        send(self.pipe, _END)
        os.close(self.pipe)
        self.pipe = -1
        select.select([self._done], [], [], _END_TIMEOUT_S)  # readable when the other process has ended
        os.close(self._done)


class _Drawing:
    """The loop of the process.

    Args:
        command, stream: see Display.
        owner: id of the process that it belongs to.
        pipe: file descriptor from which it reads.
    """

    def __init__(self, command: str, stream: int, owner: int, pipe: int) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        self._command, self._stream, self._owner, self._pipe = command, stream, owner, pipe
        self._region = Region(stream) if _can_draw_on(stream) else None
        self._ranks: dict[int, Status] = {}
        self._left = b""
        self._at_eof = False
        self._printed = time.monotonic()

    def run(self) -> None:
        """Show what arrives until the owner ends."""
        fcntl.fcntl(self._pipe, fcntl.F_SETFL, os.O_NONBLOCK)
        shown = 0.0
        while True:
            self._read_available()
            state = "" if self._at_eof else _process_state(self._owner)
            if state in ("", "Z"):
                break
            if time.monotonic() - shown >= DRAW_INTERVAL_S:
                shown = time.monotonic()
                self._show(state in "tT")
        if self._region:
            self._region.release()
        self._print_ranks()

    def _read_available(self) -> None:
        """Read what has arrived, after a wait."""
        if not select.select([self._pipe], [], [], DRAW_INTERVAL_S)[0]:
            return
        try:
            new = os.read(self._pipe, 1 << 16)
        except BlockingIOError:
            return
        *complete, self._left = (self._left + new).split(b"\n")
        self._at_eof = not new
        for line in complete:
            if line + b"\n" == _END:
                self._at_eof = True
            elif line:
                self._update(decode(line))

    def _update(self, status: Status) -> None:
        known = self._ranks.get(status.rank)
        if known is not None and status.code is not None and not status.name:  # the launcher knows the code only
            status = replace(known, code=status.code)
        self._ranks[status.rank] = status

    def _show(self, is_stopped: bool) -> None:
        size = self._region.size() if self._region else None
        if self._region and size and not is_stopped:
            self._region.draw(board.rank_lines(self._ranks_in_order(), size[1], max(1, size[0] // 2)))
            return
        if self._region:
            self._region.release()
        if time.monotonic() - self._printed >= PRINT_INTERVAL_S and not is_stopped:
            self._print_ranks()

    def _print_ranks(self) -> None:
        self._printed = time.monotonic()
        text = "".join(f"{self._command}: {line}\n" for line in board.rank_lines(self._ranks_in_order()))
        try:
            os.write(self._stream, text.encode("utf-8", "replace"))
        except OSError:  # nobody reads it any more
            return

    def _ranks_in_order(self) -> list[Status]:
        return [self._ranks[rank] for rank in sorted(self._ranks)]


def _can_draw_on(stream: int) -> bool:
    return os.isatty(stream) and host_env.process_environ().get("TERM", "dumb") != "dumb"


def _process_state(pid: int) -> str:
    """Return the state of a process as in /proc/PID/stat: T for one that is stopped; empty if there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""
