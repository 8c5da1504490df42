"""Replace files by others, all of them or none, even if the process is killed in between."""

from __future__ import annotations

import errno
import os
from typing import Iterable, NamedTuple, Sequence

from .errors import UsageError
from .message import Message
from .signals import signals_blocked

_KEPT = ".old"


class _Move(NamedTuple):
    """One file: its path, its new path, True if that path exists, and size and time to recognize the file there."""

    new: str
    place: str
    replaces: bool
    size: int
    time_ns: int

    @property
    def backup_path(self) -> str:
        """The path of the replaced file until all is done."""
        return self.new + _KEPT


def put_in_place(pairs: Sequence[tuple[str, str]], journal: str, folders: Sequence[str] = ()) -> None:
    """Move files to their new paths. If one cannot be moved, restore everything.

    Args:
        pairs: the path of each file and its new path, on one file system.
        journal: the path of a file in the staging folder, for :func:`undo_moves_of_journal` by another process.
        folders: paths of folders to create first if they are missing, outer ones before inner ones.

    Raises:
        OSError: a file cannot be moved; all others are restored.
    """
    with signals_blocked():
        _put_in_place(pairs, journal, folders)


def _put_in_place(pairs: Sequence[tuple[str, str]], journal: str, folders: Sequence[str]) -> None:
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    moves = []
    for new, place in pairs:
        status = os.lstat(new)
        moves.append(_Move(new, place, os.path.lexists(place), status.st_size, status.st_mtime_ns))
    import json  # only here: few runs move files

    with open(journal + ".part", "w") as stream:
        json.dump([missing, moves], stream)
    os.replace(journal + ".part", journal)
    try:
        for folder in missing:
            os.makedirs(folder, exist_ok=True)
        for move in moves:
            if os.path.isdir(move.place) and not os.path.islink(move.place):
                raise IsADirectoryError(errno.EISDIR, "a folder has this name", move.place)
            if move.replaces:
                _back_up(move.place, move.backup_path)
            os.replace(move.new, move.place)
        os.unlink(journal)  # from here on it is done
    except BaseException:
        undo_moves_of_journal(journal)
        raise


def undo_moves_of_journal(journal: str) -> None:
    """Undo a :func:`put_in_place` that did not finish.

    Args:
        journal: its journal; without that file there is nothing to undo.

    Raises:
        UsageError: a file has changed since. Nothing is undone, and its old content is kept.
    """
    try:
        with open(journal) as stream:
            content = stream.read()
    except FileNotFoundError:
        return
    import json

    try:
        folders, moves = json.loads(content)
        begun = [_Move(*move) for move in reversed(moves)]
        fields = [*folders, *(field for move in begun for field in move)]
        if [type(field) for field in fields] != [str] * len(folders) + [str, str, bool, int, int] * len(begun):
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise UsageError(
            "{0} has files of a killed run of another release. Restore what you need, then remove it",
            os.path.dirname(journal),
        )
    _undo_moves(begun)
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # never created, or not empty
    os.unlink(journal)


def _undo_moves(moves: Iterable[_Move]) -> None:
    begun = [move for move in moves if not os.path.lexists(move.new)]
    changed = [
        move
        for move in begun
        if os.path.lexists(move.place)
        and not _is_moved_file_there(move)
        and (not move.replaces or os.path.lexists(move.backup_path))
    ]
    if changed:
        kept = Message("Its old content is in {0}. Restore what you need", changed[0].backup_path)
        before = kept if changed[0].replaces else "It did not exist before. Check it"
        raise UsageError(
            "{0} was changed after a killed run. {1}, then remove {2}",
            changed[0].place,
            before,
            os.path.dirname(changed[0].new),
        )
    for move in begun:
        if not move.replaces:
            if os.path.lexists(move.place):
                os.unlink(move.place)
        elif os.path.lexists(move.backup_path):
            os.replace(move.backup_path, move.place)


def _is_moved_file_there(move: _Move) -> bool:
    status = os.lstat(move.place)
    return (status.st_size, status.st_mtime_ns) == (move.size, move.time_ns)


def _back_up(path: str, backup: str) -> None:
    try:
        os.link(path, backup, follow_symlinks=False)
    except OSError:  # a file system without hard links
        from shutil import copy2

        copy2(path, backup, follow_symlinks=False)
