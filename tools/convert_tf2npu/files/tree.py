"""Files and folders: what a source tree holds, and writing a tree whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

from .copying import build as _build, copy_mode
from .errors import UsageError
from .extensions import CONVERTED, NOTEBOOK
from .same import differing, hold_same, missing_in_same
from .staging import SUFFIX as STAGING, Staging, is_staging
from .transaction import put_in_place

_NOT_SOURCE = frozenset({".git", ".hg", ".svn", ".ipynb_checkpoints"})


class Entry(NamedTuple):
    """A file of the source: its path below the source and on disk, and whether it is a link."""

    relative: str
    path: str
    is_link: bool = False

    @property
    def is_python(self) -> bool:
        """Whether it is a script or a notebook, and no link to one."""
        return self.path.endswith(CONVERTED) and not self.is_link


class Tree(NamedTuple):
    """A source: its files and links, its folders, and what is no part of a migration and stays out
    (byte code stays out without being listed)."""

    entries: tuple[Entry, ...]
    folders: tuple[str, ...]
    left_out: tuple[str, ...]


def read_tree(source: str) -> Tree:
    """List a file or folder, in the order of names.

    Folders of version control, saved states of notebooks, byte code and virtual environments are left
    out.

    Raises:
        UsageError: there is no such file or folder.
    """
    if not os.path.lexists(source):
        raise UsageError(f"{source}: there is no such file or folder")
    try:
        mode = os.stat(source).st_mode
    except OSError as error:
        raise UsageError(f"{source}: {error.strerror}")
    if stat.S_ISREG(mode):
        return Tree((Entry(os.path.basename(source), source, os.path.islink(source)),), (), ())
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{source} is no file and no folder; a script from a pipe is read with -i -")
    entries: list[Entry] = []
    folders: list[str] = []
    left_out: list[str] = []
    waiting = [""]
    while waiting:  # no recursion, for folders may be nested deeper than Python's calls
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(source, below) if below else source) as found:
                for each in found:
                    relative = os.path.join(below, each.name)
                    is_link = each.is_symlink()
                    if is_link or each.is_file():
                        entries.append(Entry(relative, each.path, is_link))
                    elif not each.is_dir() or _stays_out(each.name, each.path):
                        left_out.append(relative)
                    elif each.name != "__pycache__":
                        folders.append(relative)
                        waiting.append(relative)
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}")
    return Tree(tuple(sorted(entries)), tuple(sorted(folders)), tuple(sorted(left_out)))


def _stays_out(name: str, path: str) -> bool:
    return name in _NOT_SOURCE or os.path.exists(os.path.join(path, "pyvenv.cfg")) or is_staging(path)


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


def write_tree(source: str, tree: Tree, new: dict[str, bytes], target: str, force: bool, jobs: int = 1) -> list[str]:
    """Write a copy of a source with some of its files replaced, all of it or nothing.

    Args:
        source: the folder, or the one file, that ``tree`` lists.
        tree: what it holds.
        new: new bytes by relative path.
        target: the folder to make; for a single file also the path of a file.
        force: replace files that are there and differ.
        jobs: processes that there may be.

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
                missing = _write(source, tree, new, target, force, jobs, staging)
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


def _write(
    source: str, tree: Tree, new: dict[str, bytes], target: str, force: bool, jobs: int, staging: Staging
) -> list[str]:
    """Prepare a copy and bring it to where it belongs; of one that is there in part, only what differs.

    Returns:
        the relative paths of files that cannot be read.
    """
    single = not os.path.isdir(source)
    missing: list[str] = []
    whole = not (os.path.isdir(target) and os.listdir(target))
    if not whole:
        tree = tree._replace(entries=tuple(differing(tree, new, target, single, missing)))
    missing += _build(source, tree, new, staging.new, single, jobs)
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
        if os.path.lexists(written) and not _are_same(written, place):
            pairs.append((written, place))
            changed += [entry.relative] if os.path.lexists(place) else []
    if changed and not force:
        raise UsageError(
            "%s holds %d files that differ from what would be written (%s%s); choose another folder, or "
            "replace them with --force"
            % (target, len(changed), ", ".join(changed[:3]), ", ..." if len(changed) > 3 else "")
        )
    put_in_place(pairs, staging.journal, [target] + [os.path.join(target, folder) for folder in tree.folders])


def _are_same(one: str, other: str) -> bool:
    """Whether two paths hold the same: links to the same, or files of the same mode and content."""
    if not os.path.lexists(other) or os.path.islink(one) != os.path.islink(other):
        return False
    if os.path.islink(one):
        return os.readlink(one) == os.readlink(other)
    if not os.path.isfile(other) or os.stat(one).st_mode != os.stat(other).st_mode:
        return False
    with open(one, "rb", buffering=0) as stream:
        return hold_same(stream, other)


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
