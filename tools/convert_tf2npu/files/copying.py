"""Prepare a migrated copy of a source, and compare a source with a copy that exists."""

from __future__ import annotations

import filecmp
import os
import stat
from typing import Iterator, Sequence

from .tree import Entry, Tree


def build_copy(source: str, tree: Tree, new: dict[str, bytes], building: str, is_single_file: bool) -> list[str]:
    """Prepare a copy.

    Args:
        source: the folder, or the one file.
        tree: its files and folders.
        new: new bytes by relative path.
        building: the folder to make.
        is_single_file: True if the source is one file; a link to one is followed.

    Returns:
        the relative paths of the unreadable files.

    Raises:
        OSError: a file cannot be written.
    """
    os.mkdir(building)
    for folder in tree.folders:
        os.mkdir(os.path.join(building, folder))
    missing = _copy_entries(tree.entries, new, building, is_single_file)
    if not is_single_file:
        for folder in reversed(tree.folders):
            copy_mode(os.path.join(source, folder), os.path.join(building, folder))
    return missing


def copy_mode(source: str, target: str) -> None:
    """Give a file or folder the mode of another one."""
    mode = stat.S_IMODE(os.stat(source).st_mode)
    if stat.S_IMODE(os.stat(target).st_mode) != mode:
        os.chmod(target, mode)


def _copy_entries(entries: Sequence[Entry], new: dict[str, bytes], building: str, is_single_file: bool) -> list[str]:
    from shutil import copy2  # only here: a run that writes nothing does not need it

    missing: list[str] = []
    for entry in entries:
        path = os.path.join(building, entry.relative)
        if entry.relative in new:
            with open(path, "wb") as stream:
                stream.write(new[entry.relative])
            copy_mode(entry.path, path)
        elif not is_single_file and entry.is_link:
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


def unreadable_if_same_copy(tree: Tree, new: dict[str, bytes], target: str, is_single_file: bool) -> list[str] | None:
    """Compare a target with the copy that would be written to it.

    Args:
        tree: the source.
        new: new bytes of some of its files, by relative path.
        target: the folder of the copy.
        is_single_file: True if the source is one file; a link to one is followed.

    Returns:
        the relative paths of the unreadable files, which are no part of the copy; None if the target lacks a file or
        has another one in its place.
    """
    missing: list[str] = []
    if any(not os.path.isdir(os.path.join(target, folder)) for folder in ("",) + tree.folders) or any(
        differing_entries(tree, new, target, is_single_file, missing)
    ):
        return None
    return missing


def differing_entries(
    tree: Tree, new: dict[str, bytes], target: str, is_single_file: bool, missing: list[str]
) -> Iterator[Entry]:
    """Return the files of a copy that a target lacks, or has with another content, mode or link target.

    Args:
        tree, new, target, is_single_file: see :func:`unreadable_if_same_copy`.
        missing: receives the relative paths of the unreadable files.
    """
    for entry in tree.entries:
        place = os.path.join(target, entry.relative)
        if entry.is_link and not is_single_file:
            same = os.path.islink(place) and os.readlink(place) == os.readlink(entry.path)
        elif entry.relative in new:
            mode, content = os.stat(entry.path).st_mode, new[entry.relative]
            same = _is_file_with_mode_and_size(place, mode, len(content)) and _has_content(place, content)
        elif not _can_be_read(entry.path):
            missing.append(entry.relative)
            continue
        else:
            status = os.stat(entry.path)
            same = _is_file_with_mode_and_size(place, status.st_mode, status.st_size)
            same = same and filecmp.cmp(entry.path, place, shallow=False)
        if not same:
            yield entry


def are_same_files(one: str, other: str) -> bool:
    """Return True if two paths are links with one target, or files of the same mode and content."""
    if not os.path.lexists(other) or os.path.islink(one) != os.path.islink(other):
        return False
    if os.path.islink(one):
        return os.readlink(one) == os.readlink(other)
    if not os.path.isfile(other) or os.stat(one).st_mode != os.stat(other).st_mode:
        return False
    return filecmp.cmp(one, other, shallow=False)


def _is_file_with_mode_and_size(path: str, mode: int, size: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == stat.S_IMODE(mode) and status.st_size == size
    )


def _has_content(path: str, content: bytes) -> bool:
    with open(path, "rb", buffering=0) as stream:
        return stream.read() == content
