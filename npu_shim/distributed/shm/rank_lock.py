"""Lock files: each rank holds one while its process is alive, so others see its end, whatever the cause.

The locks are POSIX record locks and not ``flock`` locks: the kernel releases them
with the process, and a forked child does not inherit them. One weakness: a process
loses its lock when it closes *any* descriptor of that file, so this module never
opens a file whose lock this process holds.
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
_TIMEOUT_S = 1.0  # for a process that holds the lock and cleans up

# The lock files that this process holds, by path, with its process id: a forked child inherits the table but not the
# locks. The table is global because the locks belong to the process.
_held: dict[str, int] = {}


@dataclass(frozen=True)
class Holder:
    """The live process that holds a lock file; ``published`` is the name that it wrote for the others."""

    incarnation: int
    pid: int
    published: str | None


class RankLock:
    """The lock of this process; ``incarnation`` is a random number that differs from earlier processes of the rank."""

    def __init__(self, path: str) -> None:
        """Acquire the lock.

        Args:
            path: of the lock file; its directory is created.
        Raises:
            RankTaken: another process holds it.
        """
        self.path = path
        self.incarnation = secrets.randbits(64) | 1
        if _is_own_directory(path):
            raise RankTaken(f"{path} is held by this process itself. A process can join a job only once.")
        self._fd = _acquire_lock(path)
        self._pid = os.getpid()
        _held[path] = self._pid
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%016x %d\n" % (self.incarnation, self._pid), 0)

    def publish(self, text: str) -> None:
        """Write a name for the other ranks, once."""
        os.pwrite(self._fd, text.encode() + b"\n", _PUBLISHED_AT)

    def release(self) -> None:
        """Remove the file, then release the lock: a process that opened it meanwhile sees that it was removed."""
        if self._fd < 0 or self._pid != os.getpid():
            return
        if _is_still_at_path(self._fd, self.path):
            os.unlink(self.path)
        os.close(self._fd)
        self._fd = -1
        del _held[self.path]


def find_other_holder(path: str) -> Holder | None:
    """Return the other live process that holds a lock file; None if there is none, or this process holds it."""
    if _is_own_directory(path):
        return None
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if not _is_locked(fd):
            return None
        record = _RECORD.match(os.pread(fd, 4096, 0))
        if record is None:
            return None
        name = record.group(3)
        return Holder(int(record.group(1), 16), int(record.group(2)), None if name is None else name.decode())
    finally:
        os.close(fd)


def try_acquire_stale(path: str) -> int | None:
    """Acquire a lock that no live process holds, to clean up. Return a descriptor for release_acquired, or None."""
    if _is_own_directory(path):
        return None
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    if _try_lock(fd) and _is_still_at_path(fd, path):
        return fd
    os.close(fd)
    return None


def release_acquired(fd: int, path: str, deletes_file: bool) -> None:
    """Release a lock from try_acquire_stale; ``deletes_file`` deletes the file first."""
    if deletes_file:
        os.unlink(path)
    os.close(fd)


def _acquire_lock(path: str) -> int:
    give_up = time.monotonic() + _TIMEOUT_S
    while True:
        make_directory(os.path.dirname(path))
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # the last rank of an earlier job has just removed the directory
            continue
        if _try_lock(fd):
            if _is_still_at_path(fd, path):
                return fd
            os.close(fd)  # removed between open and lock
            continue
        record = _RECORD.match(os.pread(fd, 4096, 0))
        os.close(fd)
        if time.monotonic() > give_up:
            raise RankTaken(f"process {int(record.group(2)) if record else '?'} holds {path}")
        time.sleep(_RETRY_S)


def make_directory(path: str) -> None:
    """Create a directory that only this user can access.

    Raises:
        CollectiveError: the path exists and is not a directory of this user.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return make_directory(path)
        if status.st_uid != os.getuid() or not os.path.isdir(path) or os.path.islink(path):
            raise CollectiveError(f"{path} is not a directory of user {os.getuid()}. Remove it.")


def _is_own_directory(path: str) -> bool:
    return _held.get(path) == os.getpid()


def _try_lock(fd: int) -> bool:
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except (BlockingIOError, PermissionError):
        return False


def _is_locked(fd: int) -> bool:
    """Return True if another process holds the lock. A test by acquiring it could mislead a third process."""
    answer = fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    return _FLOCK.unpack(answer)[0] != fcntl.F_UNLCK


def _is_still_at_path(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
