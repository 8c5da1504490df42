"""The files and folders of a source."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from .errors import UsageError
from .extensions import CONVERTED
from .staging import is_staging

_NOT_SOURCE = frozenset({".git", ".hg", ".svn", ".ipynb_checkpoints"})


class Entry(NamedTuple):
    """A file of the source: its path below the source, its path on disk, and True for a link."""

    relative: str
    path: str
    is_link: bool = False

    @property
    def is_python(self) -> bool:
        """Return True if it is a script or a notebook, and no link."""
        return self.path.endswith(CONVERTED) and not self.is_link


class Tree(NamedTuple):
    """A source: its files and links, its folders, and the paths that a migration skips (byte code is not listed)."""

    entries: tuple[Entry, ...]
    folders: tuple[str, ...]
    left_out: tuple[str, ...]


def read_tree(source: str) -> Tree:
    """List a file or folder, in the order of names.

    Folders of version control, saved states of notebooks, byte code and virtual environments are skipped.

    Raises:
        UsageError: there is no such file or folder.
    """
    if not os.path.lexists(source):
        raise UsageError("file or folder not found: {0}", source)
    try:
        mode = os.stat(source).st_mode
    except OSError as error:
        raise UsageError("{0}: {1}", source, error.strerror)
    if stat.S_ISREG(mode):
        return Tree((Entry(os.path.basename(source), source, os.path.islink(source)),), (), ())
    if not stat.S_ISDIR(mode):
        raise UsageError("{0} is neither a file nor a folder. Use -i - to read a script from a pipe", source)
    entries: list[Entry] = []
    folders: list[str] = []
    left_out: list[str] = []
    waiting = [""]
    while waiting:  # no recursion: folders may be nested deeper than Python allows calls to be
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(source, below) if below else source) as listing:
                for entry in listing:
                    relative = os.path.join(below, entry.name)
                    is_link = entry.is_symlink()
                    if is_link or entry.is_file():
                        entries.append(Entry(relative, entry.path, is_link))
                    elif not entry.is_dir() or _is_left_out(entry.name, entry.path):
                        left_out.append(relative)
                    elif entry.name != "__pycache__":
                        folders.append(relative)
                        waiting.append(relative)
        except OSError as error:
            raise UsageError("{0}: {1}", error.filename, error.strerror)
    return Tree(tuple(sorted(entries)), tuple(sorted(folders)), tuple(sorted(left_out)))


def _is_left_out(name: str, path: str) -> bool:
    return name in _NOT_SOURCE or os.path.exists(os.path.join(path, "pyvenv.cfg")) or is_staging(path)
