"""Write a migrated copy, or files in place: all of it or nothing."""

from __future__ import annotations

import errno
import os
import stat

from .copying import are_same, build, copy_mode, differing, missing_in_same
from .errors import UsageError
from .extensions import NOTEBOOK
from .staging import SUFFIX as STAGING, Staging
from .transaction import put_in_place
from .tree import Tree


def check_target(source: str, target: str) -> None:
    """Refuse a target that is the source, holds it, or lies inside it.

    Raises:
        UsageError: it does.
    """
    real_source, real_target = os.path.realpath(source), os.path.realpath(target)
    single = not os.path.isdir(real_source)
    if real_source == real_target or single and real_source == os.path.join(real_target, os.path.basename(source)):
        raise UsageError(f"{source} is the source itself; use --in-place to change it where it is")
    if single:
        return
    if (real_target + os.sep).startswith(real_source + os.sep):
        raise UsageError(f"{target} lies inside the source {source}; choose a folder outside")
    if (real_source + os.sep).startswith(real_target + os.sep):
        raise UsageError(f"{target} holds the source {source}; choose another folder")


def write_tree(source: str, tree: Tree, new: dict[str, bytes], target: str, force: bool) -> list[str]:
    """Write a copy of a source with some of its files replaced, all of it or nothing.

    Args:
        source: the folder, or the one file, that ``tree`` lists.
        tree: what it holds.
        new: new bytes by relative path.
        target: the folder to make; for a single file also the path of a file.
        force: replace files that are there and differ.

    Returns:
        the relative paths of files that could not be read and are missing in the copy.

    Raises:
        UsageError: the target holds other files by the same names, or cannot be written.
    """
    target = os.path.realpath(target) if os.path.isdir(target) else os.path.abspath(target)
    single = not os.path.isdir(source)
    if single and not os.path.isdir(target) and target.endswith((".py", NOTEBOOK)):
        target, name = os.path.split(target)
        tree = tree._replace(entries=(tree.entries[0]._replace(relative=name),))
        new = {name: content for content in new.values()}
    parent = os.path.dirname(target)
    made = _missing_folders(parent)
    done = False
    try:
        if made:
            os.makedirs(parent, exist_ok=True)
        if os.path.lexists(target) and not os.path.isdir(target):
            raise UsageError(f"{target} is there and is no folder")
        staging = Staging.beside(target)
        missing = None if os.path.lexists(staging.path) else missing_in_same(tree, new, target, single)
        if missing is None:
            with staging:
                missing = _write(source, tree, new, target, force, staging)
        done = True
        if not single:
            copy_mode(source, target)  # now: a folder that is read-only cannot be moved
        return missing
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}; nothing was changed there")
    finally:
        for folder in made if not done else ():
            if os.path.isdir(folder):
                os.rmdir(folder)


def _missing_folders(path: str) -> list[str]:
    """A folder and those above it that are not there yet, the innermost first."""
    missing: list[str] = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def _write(source: str, tree: Tree, new: dict[str, bytes], target: str, force: bool, staging: Staging) -> list[str]:
    """Prepare a copy and bring it to where it belongs; of one that is there in part, only what differs.

    Returns:
        the relative paths of files that cannot be read.
    """
    single = not os.path.isdir(source)
    missing: list[str] = []
    whole = not (os.path.isdir(target) and os.listdir(target))
    if not whole:
        tree = tree._replace(entries=tuple(differing(tree, new, target, single, missing)))
    missing += build(source, tree, new, staging.new, single)
    _put(staging, target, tree, whole and not single, force)
    return sorted(missing)


def _put(staging: Staging, target: str, tree: Tree, whole: bool, force: bool) -> None:
    """Bring what is built to where it belongs: as a whole where nothing is there, else file by file."""
    if whole:
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
        if os.path.lexists(written) and not are_same(written, place):
            pairs.append((written, place))
            changed += [entry.relative] if os.path.lexists(place) else []
    if changed and not force:
        raise UsageError(
            "%s holds %d files that differ from what would be written (%s%s); choose another folder, or "
            "replace them with --force"
            % (target, len(changed), ", ".join(changed[:3]), ", ..." if len(changed) > 3 else "")
        )
    put_in_place(pairs, staging.journal, [target] + [os.path.join(target, folder) for folder in tree.folders])


def staging_in_place(source: str) -> Staging:
    """Where files are prepared that replace those of a source."""
    real = os.path.realpath(source)
    return Staging(os.path.join(real, STAGING), source) if os.path.isdir(real) else Staging.beside(real)


def write_in_place(source: str, tree: Tree, new: dict[str, bytes]) -> None:
    """Replace files where they are, all of them or none.

    All new files are written before the first is replaced, so that a full disk or a folder that cannot be
    written leaves everything as it was.

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
                    _take_over(path, written)
                    pairs.append((written, path))
            put_in_place(pairs, staging.journal)
    except OSError as error:
        raise UsageError(
            "{} cannot be written: {}; nothing was changed".format(
                error.filename2 or error.filename or "a new file", error.strerror or error
            )
        )


def _take_over(path: str, written: str) -> None:
    """Give a new file the mode, and where that can be done the owner, of the one that it replaces."""
    found = os.stat(path)
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.chown(written, found.st_uid, found.st_gid)
        except PermissionError:
            pass  # only root may; the file then belongs to who changed it, as with any editor
    os.chmod(written, stat.S_IMODE(found.st_mode))
