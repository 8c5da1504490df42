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
    done: List[Tuple[str, str]] = []
    try:
        for new, place in pairs:
            if os.path.isdir(place) and not os.path.islink(place):
                raise IsADirectoryError(errno.EISDIR, 'a folder has the name of a new file', place)
            kept = ''
            if os.path.lexists(place):
                kept = new + _KEPT
                _keep(place, kept)
            done.append((place, kept))
            os.replace(new, place)
    except BaseException:
        for place, kept in reversed(done):
            if kept:
                os.replace(kept, place)
            elif os.path.lexists(place):
                os.unlink(place)
        raise
    for _, kept in done:
        if kept:
            os.unlink(kept)


def _keep(path: str, kept: str) -> None:
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(path, kept, follow_symlinks=False)
