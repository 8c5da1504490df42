"""A lock file per rank: held while the process lives, so that its end is seen however it came.

The locks are POSIX record locks and not those of ``flock``: the kernel drops
them with the process that took them, and a forked child does not inherit them.
Their weak side is that a process loses its lock when it closes *any* descriptor
of that file, so nothing here opens a file whose lock this process holds.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import struct
import time
from dataclasses import dataclass

from npu_shim.distributed.collectives.errors import CollectiveError, RankTaken

_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid
_PUBLISHED_AT = 64
_RECORD = re.compile(rb"^([0-9a-f]{16}) (\d+)\n\0*(?:([\w-]+)\n)?$")
_RETRY_S = 0.01

# The lock files that a process holds, with its id, as a forked child has the table and not the locks. It is global as
# the locks are: they belong to the process.
_held: dict[str, int] = {}


@dataclass(frozen=True)
class Holder:
    """The live process behind a lock file; ``published`` is what it wrote for the others."""

    life: int
    pid: int
    published: str | None


class RankLock:
    """This process's lock; ``life`` is a random number that tells it from earlier processes of the same rank."""

    def __init__(self, path: str, patience_s: float = 1.0) -> None:
        """Takes the lock.

        Args:
            path: of the lock file; its folder is made.
            patience_s: how long to wait for one who only tidies up.
        Raises:
            RankTaken: another process holds it.
        """
        self.path = path
        self.life = secrets.randbits(64) | 1
        if _is_mine(path):
            raise RankTaken(f"{path} is held by this process itself: it has joined this job as this rank already.")
        self._fd = _take(path, patience_s)
        self._pid = os.getpid()
        _held[path] = self._pid
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%016x %d\n" % (self.life, self._pid), 0)

    def publish(self, text: str) -> None:
        """Lets the others read a name; once."""
        os.pwrite(self._fd, text.encode() + b"\n", _PUBLISHED_AT)

    def give_back(self) -> None:
        """Removes the file and drops the lock, in this order: whoever opened it meanwhile sees that it is gone."""
        if self._fd < 0 or self._pid != os.getpid():
            return
        if _is_at(self._fd, self.path):
            os.unlink(self.path)
        os.close(self._fd)
        self._fd = -1
        del _held[self.path]


def holder(path: str) -> Holder | None:
    """The live process that holds a lock file of another rank, None when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if not _is_locked(fd):
            return None
        found = _RECORD.match(os.pread(fd, 4096, 0))
        if found is None:
            return None
        name = found.group(3)
        return Holder(int(found.group(1), 16), int(found.group(2)), None if name is None else name.decode())
    finally:
        os.close(fd)


def take_stale(path: str) -> int | None:
    """Takes a lock that no live process holds, to tidy up; a descriptor for drop_stale, or None."""
    if _is_mine(path):
        return None
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    if _try_lock(fd) and _is_at(fd, path):
        return fd
    os.close(fd)
    return None


def drop_stale(fd: int, path: str, remove: bool) -> None:
    """Ends what take_stale began, with or without the file."""
    if remove:
        os.unlink(path)
    os.close(fd)


def _take(path: str, patience_s: float) -> int:
    give_up = time.monotonic() + patience_s
    while True:
        make_folder(os.path.dirname(path))
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # the last rank of an earlier job has just removed the folder
            continue
        if _try_lock(fd):
            if _is_at(fd, path):
                return fd
            os.close(fd)  # removed between open and lock
            continue
        found = _RECORD.match(os.pread(fd, 4096, 0))
        os.close(fd)
        if time.monotonic() > give_up:
            raise RankTaken(f"process {int(found.group(2)) if found else '?'} holds {path}")
        time.sleep(_RETRY_S)


def make_folder(path: str) -> None:
    """Makes a folder of this user's alone.

    Raises:
        CollectiveError: there is something of somebody else's.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return make_folder(path)
        if status.st_uid != os.getuid() or not os.path.isdir(path) or os.path.islink(path):
            raise CollectiveError(f"{path} must be a folder of user {os.getuid()}, but it is not: remove it.")


def _is_mine(path: str) -> bool:
    return _held.get(path) == os.getpid()


def _try_lock(fd: int) -> bool:
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except (BlockingIOError, PermissionError):
        return False


def _is_locked(fd: int) -> bool:
    """Whether another process holds it, asked without taking it, which could look like a holder to a third."""
    answer = fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    return _FLOCK.unpack(answer)[0] != fcntl.F_UNLCK


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
