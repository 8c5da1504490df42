"""A hidden folder in which a run prepares what it writes, and what becomes of it when the run is killed.

Whatever ends a run, even what no program can catch, leaves at most this folder behind. The next run with the same
target finds it, undoes what was half done, and takes it away; a lock inside tells a run that goes on from a dead one,
and a folder without that lock file is not the tool's and stays.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import IO

from .errors import UsageError
from .signals import held_back
from .transaction import undo

try:
    import fcntl
except ImportError:  # not on Windows: there a folder that was left behind is named, and left to the user
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".convert_tf2npu"
_LOCK, _JOURNAL, _NEW = "lock", "moves", "new"
_MARK = "convert_tf2npu, process %d\n"


class Staging:
    """The folder, while a run has it.

    Args:
        path: of the folder; its name ends with ``SUFFIX``.
        target: what is being written, for what is told of it.

    Raises:
        UsageError: on entering: another run has it, or something else is in its place.
        OSError: on entering: it cannot be made.
    """

    def __init__(self, path: str, target: str) -> None:
        self.path = path
        self.target = target
        self._lock: IO[str] | None = None

    @classmethod
    def beside(cls, target: str) -> Staging:
        """The one for a file or folder, beside it."""
        folder, name = os.path.split(os.path.abspath(target))
        return cls(os.path.join(folder, "." + name + SUFFIX), target)

    @property
    def new(self) -> str:
        """The path of what is prepared: a file or a folder, which the run makes."""
        return os.path.join(self.path, _NEW)

    @property
    def journal(self) -> str:
        """Where the moves are noted for :func:`swap.put_in_place`."""
        return os.path.join(self.path, _JOURNAL)

    def __enter__(self) -> Staging:
        self.recover()
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            raise self._in_use()
        self._lock = open(os.path.join(self.path, _LOCK), "w")
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                pass  # a file system without locks: what is left behind there is not taken away either
        if not self._is_mine(self._lock):
            raise self._in_use()
        self._lock.write(_MARK % os.getpid())
        self._lock.flush()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with held_back():
            self._remove()

    def recover(self) -> None:
        """Undo what a run that was killed had begun, and take away what it left.

        Raises:
            UsageError: that run still goes on, or what is there is not a run's, or a file has changed since.
        """
        if not os.path.lexists(self.path):
            return
        if os.path.islink(self.path) or not os.path.isdir(self.path):
            raise self._in_the_way()
        try:
            lock = open(os.path.join(self.path, _LOCK), "r+")
        except OSError:
            try:
                os.rmdir(self.path)  # all that a run killed at once leaves; an own folder is not empty
            except OSError:
                raise self._in_the_way()
            return
        with lock:
            mark = lock.read(100)
            if mark and not mark.startswith(_MARK.split("%")[0]):
                raise self._in_the_way()
            try:
                if fcntl is None:
                    raise self._in_use(mark)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise self._in_use(mark)
            if not self._is_mine(lock):
                raise self._in_use(mark)
            undo(self.journal)
            self._remove()

    def _is_mine(self, lock: IO[str]) -> bool:
        """Whether no other run has taken the folder away, and perhaps made it anew, in between."""
        try:
            return os.path.samestat(os.fstat(lock.fileno()), os.stat(os.path.join(self.path, _LOCK)))
        except OSError:
            return False

    def _in_use(self, mark: str = "") -> UsageError:
        return UsageError(
            "another run is writing to {}{}; wait until it has ended, or remove {} if it does not run any more".format(
                self.target, " ({})".format(mark.split(", ")[1].strip()) if ", " in mark else "", self.path
            )
        )

    def _in_the_way(self) -> UsageError:
        return UsageError(f"{self.path} is in the way, and was not made by this tool; move it away")

    def _remove(self) -> None:
        for name in _names(self.path):
            if name != _LOCK:
                remove(os.path.join(self.path, name))
        remove(self.path)  # the lock file last: as long as anything is left, it tells whose it is
        if self._lock:
            self._lock.close()
            self._lock = None


def is_staging(path: str) -> bool:
    """Whether a folder is one of a run, dead or alive."""
    return path.endswith(SUFFIX) and os.path.isfile(os.path.join(path, _LOCK))


def remove(path: str) -> None:
    """Take away a file or folder, however deep, and though its folders may be read-only; what cannot be taken away
    stays."""
    if os.path.islink(path) or not os.path.isdir(path):
        _try(os.unlink, path)
        return
    folders: list[str] = [path]
    for folder in folders:  # grows while it is read: no recursion, which has a limit
        _try(os.chmod, folder, 0o700)
        for name in _names(folder):
            inner = os.path.join(folder, name)
            if os.path.isdir(inner) and not os.path.islink(inner):
                folders.append(inner)
            else:
                _try(os.unlink, inner)
    for folder in reversed(folders):
        _try(os.rmdir, folder)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _try(function: object, *arguments: object) -> None:
    try:
        function(*arguments)  # type: ignore[operator]
    except OSError:
        pass  # the next run tries again
