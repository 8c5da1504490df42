"""Preparing a copy of a source, by two processes where there are many files: most of the time goes into making them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from .tree import Entry, Tree

_WORTH_TWO = 200  # files


def build(source: str, tree: Tree, new: dict[str, bytes], building: str, single: bool, jobs: int) -> list[str]:
    """Prepare a copy.

    Args:
        source: the folder, or the one file.
        tree: what it holds.
        new: new bytes by relative path.
        building: the folder to make.
        single: whether the source is one file, and a link to one is followed.
        jobs: processes that there may be.

    Returns:
        the relative paths of the files that cannot be read.

    Raises:
        OSError: something cannot be written.
        UsageError: the second process was ended.
    """
    os.mkdir(building)
    for folder in tree.folders:
        os.mkdir(os.path.join(building, folder))
    if jobs > 1 and len(tree.entries) >= _WORTH_TWO:
        missing = _by_two(tree.entries, new, building, single)
    else:
        missing = _copy(tree.entries, new, building, single)
    if not single:
        for folder in reversed(tree.folders):
            copy_mode(os.path.join(source, folder), os.path.join(building, folder))
    return missing


def copy_mode(path: str, other: str) -> None:
    """Give a file or folder the mode of another one."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if stat.S_IMODE(os.stat(other).st_mode) != mode:
        os.chmod(other, mode)


def _by_two(entries: Sequence[Entry], new: dict[str, bytes], building: str, single: bool) -> list[str]:
    from ..engine.parts import in_parts  # with all that processes need

    half = len(entries) // 2
    first, second = in_parts(_copy, [(each, new, building, single) for each in (entries[:half], entries[half:])])
    return first + second


def _copy(entries: Sequence[Entry], new: dict[str, bytes], building: str, single: bool) -> list[str]:
    from shutil import copy2  # which a run that writes nothing does without

    missing: list[str] = []
    for entry in entries:
        path = os.path.join(building, entry.relative)
        if entry.relative in new:
            with open(path, "wb") as stream:
                stream.write(new[entry.relative])
            copy_mode(entry.path, path)
        elif not single and entry.is_link:
            os.symlink(os.readlink(entry.path), path)
        elif _can_be_read(entry.path):
            copy2(entry.path, path)
        else:
            missing.append(entry.relative)
    return missing


def _can_be_read(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            stream.read(1)
    except OSError:
        return False
    return True
