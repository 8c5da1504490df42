"""Files and folders: what a source tree holds, and writing a tree whole or not at all."""
from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from typing import Dict, List, NamedTuple, Optional, Tuple

_NOT_SOURCE = frozenset({'.git', '.hg', '.svn'})


class UsageError(Exception):
    """Something the user asked for cannot be done; nothing was written."""


class Entry(NamedTuple):
    """A file of the source: its path below the source and on disk."""
    relative: str
    path: str

    @property
    def is_python(self) -> bool:
        return self.path.endswith(('.py', '.pyw')) and not os.path.islink(self.path)


class Tree(NamedTuple):
    """A source: its files and links, its folders, and what is no part of a migration and stays out
    (byte code stays out without being listed)."""
    entries: Tuple[Entry, ...]
    folders: Tuple[str, ...]
    left_out: Tuple[str, ...]


def read_tree(source: str) -> Tree:
    """List a file or folder, in the order of names.

    Folders of version control, byte code and virtual environments are left out.

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
    if single and not os.path.isdir(target) and target.endswith('.py'):
        target, name = os.path.split(target)
        tree = tree._replace(entries=(tree.entries[0]._replace(relative=name),))
        new = {name: content for content in new.values()}
    parent = os.path.dirname(target)
    try:
        os.makedirs(parent, exist_ok=True)
        if os.path.lexists(target) and not os.path.isdir(target):
            raise UsageError('%s is there and is no folder' % target)
        building = tempfile.mkdtemp(prefix='.%s.' % os.path.basename(target), dir=parent)
    except OSError as error:
        raise UsageError('%s cannot be written: %s' % (target, error.strerror))
    try:
        missing = _build(source, tree, new, building, single)
        if not force:
            _check_differences(building, target, tree)
        _move(building, target, tree, single)
        return missing
    except OSError as error:
        raise UsageError('%s cannot be written: %s; nothing was left there' % (
            target, error.strerror))
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _build(source: str, tree: Tree, new: Dict[str, bytes], building: str, single: bool) -> List[str]:
    missing: List[str] = []
    for folder in tree.folders:
        os.makedirs(os.path.join(building, folder), exist_ok=True)
    for entry in tree.entries:
        path = os.path.join(building, entry.relative)
        try:
            if entry.relative in new:
                with open(path, 'wb') as stream:
                    stream.write(new[entry.relative])
                shutil.copymode(entry.path, path)
            else:
                shutil.copy2(entry.path, path, follow_symlinks=False)
        except PermissionError as error:
            if error.filename not in (entry.path, os.fsencode(entry.path)):
                raise
            missing.append(entry.relative)
    if not single:
        for folder in reversed(tree.folders):
            shutil.copymode(os.path.join(source, folder), os.path.join(building, folder))
        shutil.copymode(source, building)
    return missing


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
    for entry in tree.entries:
        if os.path.lexists(os.path.join(building, entry.relative)):
            os.replace(os.path.join(building, entry.relative), os.path.join(target, entry.relative))


def write_in_place(tree: Tree, new: Dict[str, bytes]) -> None:
    """Replace files where they are, each whole or not at all.

    All new files are written beside the old ones before the first is replaced, so that a full disk or
    a folder that cannot be written leaves everything as it was.

    Raises:
        UsageError: a file cannot be written.
    """
    written: List[Tuple[str, str]] = []
    try:
        for entry in tree.entries:
            if entry.relative in new:
                handle, beside = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(entry.path)))
                written.append((beside, entry.path))
                with os.fdopen(handle, 'wb') as stream:
                    stream.write(new[entry.relative])
                shutil.copymode(entry.path, beside)
        while written:
            os.replace(*written[0])
            written.pop(0)
    except OSError as error:
        raise UsageError('%s cannot be written: %s' % (error.filename or '', error.strerror))
    finally:
        for beside, _ in written:
            os.unlink(beside)
