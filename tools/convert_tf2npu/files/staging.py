"""The hidden folder in which a run prepares its output, and its recovery after the run is killed.

However a run ends, it leaves at most this folder behind. The next run with the same target finds it, undoes the
unfinished changes and removes it. A lock inside tells a live run from a dead one. A folder without that lock file is
not the tool's, and the tool does not touch it.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import IO

from .errors import UsageError
from .signals import signals_blocked
from .transaction import undo_moves_of_journal

try:
    import fcntl
except ImportError:  # Windows: the user must remove the folder of a killed run
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".convert_tf2npu"
_LOCK, _JOURNAL, _NEW = "lock", "moves", "new"
_MARK = "convert_tf2npu, process "


class Staging:
    """The folder, while a run uses it.

    Args:
        path: of the folder; its name ends with ``SUFFIX``.
        target: the file or folder that the run writes, for error messages.

    Raises:
        UsageError: on entering: another run uses it, or the path exists and is not the tool's.
        OSError: on entering: it cannot be created.
    """

    def __init__(self, path: str, target: str) -> None:
        self.path = path
        self.target = target
        self._lock: IO[str] | None = None

    @classmethod
    def beside(cls, target: str) -> Staging:
        """Return the folder for a file or folder, beside it."""
        folder, name = os.path.split(os.path.abspath(target))
        return cls(os.path.join(folder, "." + name + SUFFIX), target)

    @property
    def new(self) -> str:
        """The path of the prepared file or folder, which the run creates."""
        return os.path.join(self.path, _NEW)

    @property
    def journal(self) -> str:
        """The path of the journal for :func:`transaction.put_in_place`."""
        return os.path.join(self.path, _JOURNAL)

    def __enter__(self) -> Staging:
        self.recover()
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            raise self._in_use_error()
        try:
            self._lock = open(os.path.join(self.path, _LOCK), "x")
        except (FileNotFoundError, FileExistsError):  # a run that began with this one took the folder for a dead one's
            raise self._in_use_error()
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._in_use_error()
            except OSError:
                pass  # a file system without locks: recovery cannot tell a live run there and refuses
        if not self._still_owns_folder(self._lock):
            raise self._in_use_error()
        self._lock.write(f"{_MARK}{os.getpid()}\n")
        self._lock.flush()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with signals_blocked():
            self._remove_folder()

    def recover(self) -> None:
        """Undo the unfinished changes of a killed run, and remove its folder.

        Raises:
            UsageError: the run is still alive, the folder is not the tool's, or a file has changed since.
        """
        if not os.path.lexists(self.path):
            return
        if os.path.islink(self.path) or not os.path.isdir(self.path):
            raise self._in_the_way_error()
        try:
            lock = open(os.path.join(self.path, _LOCK), "r+")
        except OSError:
            try:
                os.rmdir(self.path)  # a run killed at once leaves an empty folder
            except FileNotFoundError:
                return
            except OSError:
                raise (
                    self._in_use_error()
                    if os.path.lexists(os.path.join(self.path, _LOCK))
                    else self._in_the_way_error()
                )
            return
        with lock:
            mark = lock.read(100)
            if mark and not mark.startswith(_MARK):
                raise self._in_the_way_error()
            try:
                if fcntl is None:
                    raise self._in_use_error(mark)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise self._in_use_error(mark)
            if not self._still_owns_folder(lock):
                raise self._in_use_error(mark)
            undo_moves_of_journal(self.journal)
            self._remove_folder()

    def _still_owns_folder(self, lock: IO[str]) -> bool:
        """Return True if no other run has removed, or replaced, the folder in the meantime."""
        try:
            return os.path.samestat(os.fstat(lock.fileno()), os.stat(os.path.join(self.path, _LOCK)))
        except OSError:
            return False

    def _in_use_error(self, mark: str = "") -> UsageError:
        process = f" ({mark.split(', ')[1].strip()})" if ", " in mark else ""
        return UsageError(
            "another run is writing to {0}{1}. Wait until it ends, or remove {2} if it is dead",
            self.target,
            process,
            self.path,
        )

    def _in_the_way_error(self) -> UsageError:
        return UsageError("{0} exists and was not created by this tool. Move it away", self.path)

    def _remove_folder(self) -> None:
        for name in _names_in_folder(self.path):
            if name != _LOCK:
                remove_tree(os.path.join(self.path, name))
        remove_tree(self.path)  # the lock file last: it marks the folder as the tool's
        if self._lock:
            self._lock.close()
            self._lock = None


def is_staging(path: str) -> bool:
    """Return True if a folder belongs to a run, dead or alive."""
    return path.endswith(SUFFIX) and os.path.isfile(os.path.join(path, _LOCK))


def remove_tree(path: str) -> None:
    """Remove a file or folder, however deep, with read-only folders too. Ignore files that cannot be removed."""
    if os.path.islink(path) or not os.path.isdir(path):
        _call_ignoring_os_errors(os.unlink, path)
        return
    folders: list[str] = [path]
    for folder in folders:  # grows in the loop: no recursion, which has a limit
        _call_ignoring_os_errors(os.chmod, folder, 0o700)
        for name in _names_in_folder(folder):
            inner = os.path.join(folder, name)
            if os.path.isdir(inner) and not os.path.islink(inner):
                folders.append(inner)
            else:
                _call_ignoring_os_errors(os.unlink, inner)
    for folder in reversed(folders):
        _call_ignoring_os_errors(os.rmdir, folder)


def _names_in_folder(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _call_ignoring_os_errors(function: object, *arguments: object) -> None:
    try:
        function(*arguments)  # type: ignore[operator]
    except OSError:
        pass  # the next run tries again
