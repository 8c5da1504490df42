"""Putting files in place of others, all of them or none."""
from __future__ import annotations

import errno
import os
import shutil
from typing import List, Sequence, Tuple

_KEPT = '.old'


def put_in_place(pairs: Sequence[Tuple[str, str]]) -> None:
    """Move files to where they belong; where one cannot be moved, everything is as it was.

    Args:
        pairs: the path of each new file, and the path that it gets, on one file system.

    Raises:
        OSError: a file cannot be moved; all others are back.
    """
    begun: List[Tuple[str, str]] = []
    try:
        for new, place in pairs:
            if os.path.isdir(place) and not os.path.islink(place):
                raise IsADirectoryError(errno.EISDIR, 'a folder has the name of a new file', place)
            kept = new + _KEPT if os.path.lexists(place) else ''
            begun.append((place, kept))
            if kept:
                _keep(place, kept)
            os.replace(new, place)
    except BaseException:
        for place, kept in reversed(begun):
            _put_back(place, kept)
        raise
    for _, kept in begun:
        if kept:
            os.unlink(kept)


def _put_back(place: str, kept: str) -> None:
    if not kept:
        if os.path.lexists(place):
            os.unlink(place)
    elif os.path.lexists(kept):
        os.replace(kept, place)
        if os.path.lexists(kept):  # two names of one file are left as they are by a replacement
            os.unlink(kept)


def _keep(path: str, kept: str) -> None:
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(path, kept, follow_symlinks=False)
