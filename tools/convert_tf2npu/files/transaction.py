"""Putting files in place of others, all of them or none, even where the process is killed in between."""

from __future__ import annotations

import errno
import os
from typing import Iterable, NamedTuple, Sequence

from .errors import UsageError
from .signals import held_back

_KEPT = ".old"


class _Move(NamedTuple):
    """One file: its path, the path that it gets, whether something is there already, and by what it is known there."""

    new: str
    place: str
    replaces: bool
    size: int
    time_ns: int

    @property
    def kept(self) -> str:
        """Where what it replaces is kept until all is done."""
        return self.new + _KEPT


def put_in_place(pairs: Sequence[tuple[str, str]], journal: str, folders: Sequence[str] = ()) -> None:
    """Move files to where they belong; where one cannot be moved, everything is as it was.

    Args:
        pairs: the path of each new file, and the path that it gets, on one file system.
        journal: the path of a file, beside which nothing matters, for :func:`undo` by another process.
        folders: paths of folders that are made first where they are missing, outer ones before inner ones.

    Raises:
        OSError: a file cannot be moved; all others are back.
    """
    with held_back():
        _put_in_place(pairs, journal, folders)


def _put_in_place(pairs: Sequence[tuple[str, str]], journal: str, folders: Sequence[str]) -> None:
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    moves = []
    for new, place in pairs:
        found = os.lstat(new)
        moves.append(_Move(new, place, os.path.lexists(place), found.st_size, found.st_mtime_ns))
    import json  # here: few runs move files

    with open(journal + ".part", "w") as stream:
        json.dump([missing, moves], stream)
    os.replace(journal + ".part", journal)
    try:
        for folder in missing:
            os.makedirs(folder, exist_ok=True)
        for move in moves:
            if os.path.isdir(move.place) and not os.path.islink(move.place):
                raise IsADirectoryError(errno.EISDIR, "a folder has the name of a new file", move.place)
            if move.replaces:
                _keep(move.place, move.kept)
            os.replace(move.new, move.place)
        os.unlink(journal)  # from here on it is done
    except BaseException:
        undo(journal)
        raise


def undo(journal: str) -> None:
    """Make everything as it was before a :func:`put_in_place` that did not come to its end.

    Args:
        journal: as given there; where there is no such file, nothing was begun, or all was done.

    Raises:
        UsageError: somebody has changed a file since; nothing more is undone, and its old content is kept.
    """
    try:
        with open(journal) as stream:
            content = stream.read()
    except FileNotFoundError:
        return
    import json

    folders, moves = json.loads(content)
    _undo_moves([_Move(*move) for move in reversed(moves)])
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # it was never made, or holds something by now
    os.unlink(journal)


def _undo_moves(moves: Iterable[_Move]) -> None:
    begun = [move for move in moves if not os.path.lexists(move.new)]
    changed = [
        move
        for move in begun
        if os.path.lexists(move.place) and not _is_there(move) and (not move.replaces or os.path.lexists(move.kept))
    ]
    if changed:
        raise UsageError(
            "{} was changed after a run that was killed; {}. Then remove {}".format(
                changed[0].place,
                f"what it was before is in {changed[0].kept}" if changed[0].replaces else "it was not there before",
                os.path.dirname(changed[0].new),
            )
        )
    for move in begun:
        if not move.replaces:
            if os.path.lexists(move.place):
                os.unlink(move.place)
        elif os.path.lexists(move.kept):
            os.replace(move.kept, move.place)


def _is_there(move: _Move) -> bool:
    found = os.lstat(move.place)
    return (found.st_size, found.st_mtime_ns) == (move.size, move.time_ns)


def _keep(path: str, kept: str) -> None:
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:  # a file system without hard links
        from shutil import copy2

        copy2(path, kept, follow_symlinks=False)
