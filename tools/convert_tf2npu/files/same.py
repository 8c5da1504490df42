"""What of a migrated copy is there already, so that it is not written again."""

from __future__ import annotations

import os
import stat
from typing import IO, TYPE_CHECKING, Iterator

if TYPE_CHECKING:
    from .tree import Entry, Tree

_PIECE_BYTES = 1 << 20


def missing_in_same(tree: Tree, new: dict[str, bytes], target: str, single: bool) -> list[str] | None:
    """Whether a target holds all of a copy.

    Args:
        tree: the source.
        new: new bytes of some of its files, by relative path.
        target: the folder of the copy.
        single: whether the source is one file, and a link to one is followed.

    Returns:
        the relative paths of the files that cannot be read and are no part of the copy; None where the target lacks
        something, or has something else in its place.
    """
    missing: list[str] = []
    if any(not os.path.isdir(os.path.join(target, folder)) for folder in ("",) + tree.folders) or any(
        differing(tree, new, target, single, missing)
    ):
        return None
    return missing


def differing(tree: Tree, new: dict[str, bytes], target: str, single: bool, missing: list[str]) -> Iterator[Entry]:
    """The files of a copy that a target lacks, or holds with other content, modes or as other links.

    Args:
        tree, new, target, single: as of :func:`missing_in_same`.
        missing: gets the relative paths of the files that cannot be read.
    """
    for entry in tree.entries:
        place = os.path.join(target, entry.relative)
        if entry.is_link and not single:
            same = os.path.islink(place) and os.readlink(place) == os.readlink(entry.path)
        elif entry.relative in new:
            content = new[entry.relative]
            same = _is_file(place, stat.S_IMODE(os.stat(entry.path).st_mode), len(content)) and _holds(place, content)
        else:
            try:
                stream = open(entry.path, "rb", buffering=0)
            except OSError:
                missing.append(entry.relative)
                continue
            with stream:
                found = os.fstat(stream.fileno())
                same = _is_file(place, stat.S_IMODE(found.st_mode), found.st_size) and hold_same(stream, place)
        if not same:
            yield entry


def _is_file(path: str, mode: int, size: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == mode and found.st_size == size


def _holds(path: str, content: bytes) -> bool:
    with open(path, "rb", buffering=0) as stream:
        return stream.read() == content


def hold_same(one: IO[bytes], path: str) -> bool:
    """Whether an open file, from where it is, and another one hold the same."""
    with open(path, "rb", buffering=0) as other:
        while True:
            piece = one.read(_PIECE_BYTES)
            if piece != other.read(_PIECE_BYTES):
                return False
            if not piece:
                return True
