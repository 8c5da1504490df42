"""Processes that do as they are told over a channel: copies of this one, where that is safe, else new ones."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from typing import Any, Callable, NamedTuple, Sequence

from .signals import leave_to_parent

_LOOK_S = 0.5
_HEAD_BYTES = 8


class Channel:
    """Messages between two processes over pipes, as a Connection of :mod:`multiprocessing`, which takes as long to load
    as all of the tool.

    Args:
        reads, writes: the ends of the pipes.
    """

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes

    def send_bytes(self, message: bytes) -> None:
        """Send a message; BrokenPipeError where the other process is gone."""
        left = memoryview(len(message).to_bytes(_HEAD_BYTES, "little") + message)
        while left:
            left = left[os.write(self._writes, left) :]

    def recv_bytes(self) -> bytes:
        """The next message; EOFError where the other process is gone."""
        return self._read(int.from_bytes(self._read(_HEAD_BYTES), "little"))

    def _read(self, size: int) -> bytes:
        pieces: list[bytes] = []
        while size:
            piece = os.read(self._reads, size)
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def fileno(self) -> int:
        """By which it is waited for."""
        return self._reads

    def close(self) -> None:
        """Give the ends of the pipes back."""
        os.close(self._reads)
        os.close(self._writes)


class Process(NamedTuple):
    """A process: the channel to it, how to wait for some of these, and how to end it, whatever it does."""

    channel: Any
    wait: Callable[[Sequence[Any]], Sequence[Any]]
    end: Callable[[], None]


Serve = Callable[..., None]  # is given a channel and more; ends when there is no other side


def start(serve: Serve, arguments: tuple[Any, ...], others: Sequence[Process]) -> Process:
    """Start a process; signals that end the run have to be held back.

    Args:
        serve: what it does, a function of a module.
        arguments: for it, after the channel.
        others: the processes that were started before.
    """
    return _forked(serve, arguments, others) if may_fork() else _spawned(serve, arguments)


def may_fork() -> bool:
    """Whether this process can be copied: what another thread is about to do would never come to an end in the copy."""
    if not hasattr(os, "fork") or sys.platform == "darwin":  # whose own libraries have threads
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1  # those of libraries, too
    except OSError:
        return threading.active_count() == 1


def _forked(serve: Serve, arguments: tuple[Any, ...], others: Sequence[Process]) -> Process:
    (its_reads, writes), (reads, its_writes) = os.pipe(), os.pipe()
    main = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            for end in (reads, writes):
                os.close(end)
            for other in others:  # else it would not be seen there that the main process is gone
                other.channel.close()
            _serve(serve, main, Channel(its_reads, its_writes), arguments)
            os._exit(0)
        finally:
            os._exit(1)
    for end in (its_reads, its_writes):
        os.close(end)
    channel = Channel(reads, writes)

    def end_it() -> None:
        channel.close()
        os.kill(pid, signal.SIGKILL)  # it writes no files
        os.waitpid(pid, 0)

    return Process(channel, _wait, end_it)


def _wait(channels: Sequence[Channel]) -> Sequence[Channel]:
    from select import select

    return select(channels, [], [])[0]


def _spawned(serve: Serve, arguments: tuple[Any, ...]) -> Process:
    import multiprocessing
    from multiprocessing.connection import wait

    context = multiprocessing.get_context("spawn")
    channel, its_channel = context.Pipe()
    process = context.Process(target=_serve, args=(serve, os.getpid(), its_channel, arguments), daemon=True)
    process.start()
    its_channel.close()

    def end_it() -> None:
        channel.close()
        process.kill()
        process.join()

    return Process(channel, wait, end_it)


def _serve(serve: Serve, main: int, channel: Any, arguments: tuple[Any, ...]) -> None:
    leave_to_parent()
    threading.Thread(target=_end_with, args=(main,), daemon=True).start()
    gc.disable()
    gc.freeze()  # what came from the main process is shared with it as long as nobody looks through it
    try:
        serve(channel, *arguments)
    except BrokenPipeError:
        pass  # the main process has all it wants


def _end_with(main: int) -> None:
    """End this process soon after the main one, also in the midst of a file."""
    while os.getppid() == main:
        time.sleep(_LOOK_S)
    os._exit(1)
