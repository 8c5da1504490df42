"""Write a migrated copy, or files in place: all of it or nothing."""

from __future__ import annotations

import errno
import os
import stat
from typing import List

from .copying import are_same_files, build_copy, copy_mode, differing_entries, unreadable_if_same_copy
from .errors import UsageError
from .extensions import NOTEBOOK
from .message import Message
from .staging import SUFFIX as STAGING, Staging
from .transaction import put_in_place
from .tree import Tree

Unreadable = List[str]  # relative, which the copy lacks


def write_copy(source: str, tree: Tree, replacements: dict[str, bytes], target: str, overwrite: bool) -> Unreadable:
    """Write a copy of a source with some of its files replaced, all of it or nothing.

    Args:
        source: the folder, or the one file, that ``tree`` lists.
        tree: its files and folders.
        replacements: new bytes by relative path.
        target: the folder to create; for a single file also the path of a file.
        overwrite: replace files that exist and differ.

    Returns:
        the relative paths of unreadable files, which are missing in the copy.

    Raises:
        UsageError: the target has different files of the same names, or cannot be written.
    """
    target = os.path.realpath(target) if os.path.isdir(target) else os.path.abspath(target)
    single = not os.path.isdir(source)
    if single and not os.path.isdir(target) and target.endswith((".py", NOTEBOOK)):
        target, name = os.path.split(target)
        tree = tree._replace(entries=(tree.entries[0]._replace(relative=name),))
        replacements = dict(zip([name], replacements.values()))
    parent = os.path.dirname(target)
    new_folders = _missing_folders(parent)
    done = False
    try:
        if new_folders:
            os.makedirs(parent, exist_ok=True)
        if os.path.lexists(target) and not os.path.isdir(target):
            raise UsageError("{0} exists and is not a folder", target)
        staging = Staging.beside(target)
        missing = None if os.path.lexists(staging.path) else unreadable_if_same_copy(tree, replacements, target, single)
        if missing is None:
            with staging:
                missing = _write_and_list_unreadable(source, tree, replacements, target, overwrite, staging)
        done = True
        if not single:
            copy_mode(source, target)  # last: a read-only folder cannot be moved
        return missing
    except OSError as error:
        raise UsageError("cannot write {0}: {1}. Nothing was changed there", target, error.strerror or error)
    finally:
        for folder in new_folders if not done else ():
            if os.path.isdir(folder):
                os.rmdir(folder)


def _missing_folders(path: str) -> list[str]:
    """Return a folder and the folders above it that do not exist, the innermost first."""
    missing: list[str] = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def _write_and_list_unreadable(
    source: str, tree: Tree, replacements: dict[str, bytes], target: str, overwrite: bool, staging: Staging
) -> Unreadable:
    """Prepare a copy and move it to the target. If the target has files, write only those that differ.

    Returns:
        the relative paths of unreadable files.
    """
    single = not os.path.isdir(source)
    missing: list[str] = []
    whole = not (os.path.isdir(target) and os.listdir(target))
    if not whole:
        tree = tree._replace(entries=tuple(differing_entries(tree, replacements, target, single, missing)))
    missing += build_copy(source, tree, replacements, staging.new, single)
    _move_to_target(staging, target, tree, whole and not single, overwrite)
    return sorted(missing)


def _move_to_target(staging: Staging, target: str, tree: Tree, as_whole: bool, overwrite: bool) -> None:
    """Move the prepared copy to the target: as a whole if the target is empty, else file by file."""
    if as_whole:
        try:
            os.rename(staging.new, target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                raise
    changed: list[str] = []
    pairs: list[tuple[str, str]] = []
    for entry in tree.entries:
        written, place = os.path.join(staging.new, entry.relative), os.path.join(target, entry.relative)
        if os.path.lexists(written) and not are_same_files(written, place):
            pairs.append((written, place))
            changed += [entry.relative] if os.path.lexists(place) else []
    if changed and not overwrite:
        differ = "1 file that differs" if len(changed) == 1 else Message("{0} files that differ", len(changed))
        raise UsageError(
            "{0} has {1} ({2}{3}). Choose another folder, or replace with --force",
            target,
            differ,
            ", ".join(changed[:3]),
            ", ..." if len(changed) > 3 else "",
        )
    put_in_place(pairs, staging.journal, [target] + [os.path.join(target, folder) for folder in tree.folders])


def staging_in_place(source: str) -> Staging:
    """Return the staging folder for changes of a source in place."""
    real = os.path.realpath(source)
    return Staging(os.path.join(real, STAGING), source) if os.path.isdir(real) else Staging.beside(real)


def write_in_place(source: str, tree: Tree, new: dict[str, bytes]) -> None:
    """Replace files in place, all of them or none.

    All new files are written before the first is replaced: a full disk or a read-only folder changes nothing.

    Raises:
        UsageError: a file cannot be written.
    """
    if not new:
        return
    pairs: list[tuple[str, str]] = []
    try:
        with staging_in_place(source) as staging:
            os.mkdir(staging.new)
            for entry in tree.entries:
                if entry.relative in new:
                    path = os.path.realpath(entry.path)
                    written = os.path.join(staging.new, str(len(pairs)))
                    with open(written, "wb") as stream:
                        stream.write(new[entry.relative])
                    _copy_mode_and_owner(path, written)
                    pairs.append((written, path))
            put_in_place(pairs, staging.journal)
    except OSError as error:
        raise UsageError(
            "cannot write {0}: {1}. Nothing was changed",
            error.filename2 or error.filename or "a new file",
            error.strerror or error,
        )


def _copy_mode_and_owner(path: str, written: str) -> None:
    """Give a new file the mode, and if permitted the owner, of the file that it replaces."""
    status = os.stat(path)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.chown(written, status.st_uid, status.st_gid)
        except PermissionError:
            pass  # only root may; otherwise the file belongs to the user, as with any editor
    os.chmod(written, stat.S_IMODE(status.st_mode))
