"""Temporary folders of commands. Old ones are removed, but for copies of the user's files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
from typing import Iterator

from npu_shim.rehearsal.files.kept import leftover_stores_with_copies

_PREFIXES = "npu_shim_verify_", "npu_shim_assess_"
_LOCK = "lock"
_OLD_S = 24 * 3600.0  # the output of a script that fails stays so long


@contextlib.contextmanager
def command_folder(prefix: str) -> Iterator[str]:
    """Remove old folders of commands, and yield a new one, which stays.

    A process that is asked to end leaves the block, so that what a script has written is taken back.
    """
    for path in _leftover_folders(before=time.time() - _OLD_S):
        if not leftover_stores_with_copies(path):
            shutil.rmtree(path, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=prefix)
    with open(os.path.join(folder, _LOCK), "w") as lock, exit_on_signals():
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def leftover_copies() -> list[str]:
    """Return the folders with copies of the user's files that killed commands have left."""
    return [store for path in _leftover_folders(before=time.time()) for store in leftover_stores_with_copies(path)]


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as sys.exit() does."""
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:  # nohup ignores SIGHUP
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _leftover_folders(before: float) -> list[str]:
    """Return the folders of commands of this user that have ended, and that are older than a time."""
    above = tempfile.gettempdir()
    left = []
    for path in [os.path.join(above, name) for name in os.listdir(above) if name.startswith(_PREFIXES)]:
        with contextlib.suppress(FileNotFoundError):  # another command removes it now
            about = os.stat(path)
            if about.st_uid == os.getuid() and about.st_mtime < before and not _is_locked(path):
                left.append(path)
    return left


def _is_locked(folder: str) -> bool:
    path = os.path.join(folder, _LOCK)
    if not os.path.exists(path):
        return False
    with open(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
