"""Files and folders: what a source tree holds, and writing a tree whole or not at all."""
from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from typing import Dict, List, NamedTuple, Optional, Tuple

from .notebook import SUFFIX
from .swap import put_in_place

_NOT_SOURCE = frozenset({'.git', '.hg', '.svn', '.ipynb_checkpoints'})


class UsageError(Exception):
    """Something the user asked for cannot be done; nothing was written."""


class Entry(NamedTuple):
    """A file of the source: its path below the source and on disk."""
    relative: str
    path: str

    @property
    def is_python(self) -> bool:
        """Whether it is a script or a notebook, and no link to one."""
        return self.path.endswith(('.py', '.pyw', SUFFIX)) and not os.path.islink(self.path)


class Tree(NamedTuple):
    """A source: its files and links, its folders, and what is no part of a migration and stays out
    (byte code stays out without being listed)."""
    entries: Tuple[Entry, ...]
    folders: Tuple[str, ...]
    left_out: Tuple[str, ...]


def read_tree(source: str) -> Tree:
    """List a file or folder, in the order of names.

    Folders of version control, saved states of notebooks, byte code and virtual environments are left
    out.

    Raises:
        UsageError: there is no such file or folder.
    """
    if not os.path.lexists(source):
        raise UsageError('%s: there is no such file or folder' % source)
    if not os.path.isdir(source):
        return Tree((Entry(os.path.basename(source), source),), (), ())
    entries: List[Entry] = []
    folders: List[str] = []
    left_out: List[str] = []

    def failed(error: OSError) -> None:
        raise UsageError('%s: %s' % (error.filename, error.strerror))

    for folder, names, files in os.walk(source, onerror=failed):
        names.sort()
        below = os.path.relpath(folder, source)
        for name in list(names):
            path = os.path.join(folder, name)
            relative = os.path.normpath(os.path.join(below, name))
            if os.path.islink(path):
                names.remove(name)
                entries.append(Entry(relative, path))
            elif name == '__pycache__':
                names.remove(name)
            elif name in _NOT_SOURCE or os.path.exists(os.path.join(path, 'pyvenv.cfg')):
                names.remove(name)
                left_out.append(relative)
            else:
                folders.append(relative)
        for name in sorted(files):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            relative = os.path.normpath(os.path.join(below, name))
            if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                entries.append(Entry(relative, path))
            else:
                left_out.append(relative)
    return Tree(tuple(sorted(entries)), tuple(folders), tuple(left_out))


def check_target(source: str, target: str) -> None:
    """Refuse a target that is the source, holds it, or lies inside it.

    Raises:
        UsageError: it does.
    """
    real_source, real_target = os.path.realpath(source), os.path.realpath(target)
    if real_source == real_target:
        raise UsageError('%s is the source itself; use --in-place to change it where it is' % target)
    if not os.path.isdir(real_source):
        return
    if (real_target + os.sep).startswith(real_source + os.sep):
        raise UsageError('%s lies inside the source %s; choose a folder outside' % (target, source))
    if (real_source + os.sep).startswith(real_target + os.sep):
        raise UsageError('%s holds the source %s; choose another folder' % (target, source))


def write_tree(source: str, tree: Tree, new: Dict[str, bytes], target: str, force: bool) -> List[str]:
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
    target = os.path.abspath(target)
    single = not os.path.isdir(source)
    if single and not os.path.isdir(target) and target.endswith(('.py', SUFFIX)):
        target, name = os.path.split(target)
        tree = tree._replace(entries=(tree.entries[0]._replace(relative=name),))
        new = {name: content for content in new.values()}
    parent = os.path.dirname(target)
    made = _missing_folders(parent)
    done = False
    try:
        os.makedirs(parent, exist_ok=True)
        if os.path.lexists(target) and not os.path.isdir(target):
            raise UsageError('%s is there and is no folder' % target)
        building = tempfile.mkdtemp(prefix='.%s.' % os.path.basename(target), dir=parent)
        try:
            missing = _build(source, tree, new, building, single)
            if not force:
                _check_differences(building, target, tree)
            _move(building, target, tree, single)
            done = True
            return missing
        finally:
            shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        raise UsageError('%s cannot be written: %s; nothing was changed there' % (
            target, error.strerror or error))
    finally:
        for folder in made if not done else ():
            if os.path.isdir(folder):
                os.rmdir(folder)


def _missing_folders(path: str) -> List[str]:
    """A folder and those above it that are not there yet, the innermost first."""
    missing: List[str] = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing


def _build(source: str, tree: Tree, new: Dict[str, bytes], building: str, single: bool) -> List[str]:
    missing: List[str] = []
    for folder in tree.folders:
        os.makedirs(os.path.join(building, folder), exist_ok=True)
    for entry in tree.entries:
        path = os.path.join(building, entry.relative)
        if entry.relative in new:
            with open(path, 'wb') as stream:
                stream.write(new[entry.relative])
            shutil.copymode(entry.path, path)
        elif not single and os.path.islink(entry.path):
            os.symlink(os.readlink(entry.path), path)
        elif _can_be_read(entry.path):
            shutil.copy2(entry.path, path)
        else:
            missing.append(entry.relative)
    if not single:
        for folder in reversed(tree.folders):
            shutil.copymode(os.path.join(source, folder), os.path.join(building, folder))
        shutil.copymode(source, building)
    return missing


def _can_be_read(path: str) -> bool:
    try:
        with open(path, 'rb') as stream:
            stream.read(1)
    except OSError:
        return False
    return True


def _check_differences(building: str, target: str, tree: Tree) -> None:
    differing = [e.relative for e in tree.entries
                 if os.path.lexists(os.path.join(target, e.relative))
                 and os.path.lexists(os.path.join(building, e.relative))
                 and _content(os.path.join(target, e.relative)) != _content(
                     os.path.join(building, e.relative))]
    if differing:
        raise UsageError('%s holds %d files that differ from what would be written (%s%s); choose '
                         'another folder, or replace them with --force' % (
                             target, len(differing), ', '.join(differing[:3]),
                             ', ...' if len(differing) > 3 else ''))


def _content(path: str) -> Optional[bytes]:
    if os.path.islink(path):
        return os.fsencode(os.readlink(path))
    if os.path.isdir(path):
        return None
    with open(path, 'rb') as stream:
        return stream.read()


def _move(building: str, target: str, tree: Tree, single: bool) -> None:
    if not single:
        try:
            if os.path.isdir(target):
                os.rmdir(target)
            os.rename(building, target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                raise
    os.makedirs(target, exist_ok=True)
    for folder in tree.folders:
        os.makedirs(os.path.join(target, folder), exist_ok=True)
    put_in_place([(os.path.join(building, e.relative), os.path.join(target, e.relative))
                  for e in tree.entries if os.path.lexists(os.path.join(building, e.relative))])


def write_in_place(tree: Tree, new: Dict[str, bytes]) -> None:
    """Replace files where they are, all of them or none.

    All new files are written beside the old ones before the first is replaced, so that a full disk or
    a folder that cannot be written leaves everything as it was.

    Raises:
        UsageError: a file cannot be written.
    """
    beside: List[Tuple[str, str]] = []
    try:
        for entry in tree.entries:
            if entry.relative in new:
                path = os.path.realpath(entry.path)
                folder, name = os.path.split(path)
                handle, written = tempfile.mkstemp(prefix='.%s.' % name, dir=folder)
                beside.append((written, path))
                with os.fdopen(handle, 'wb') as stream:
                    stream.write(new[entry.relative])
                shutil.copymode(path, written)
        put_in_place(beside)
    except OSError as error:
        raise UsageError('%s cannot be written: %s; nothing was changed' % (
            error.filename or 'a new file', error.strerror or error))
    finally:
        for written, _ in beside:
            if os.path.lexists(written):
                os.unlink(written)
