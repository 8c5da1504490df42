"""``moxing.file``: the file functions of ModelArts on local paths.

Paths of OBS are those of :func:`npu_shim._host.moxing.paths.to_local_path`. As in OBS, a file can be written below a
folder that does not exist yet. Names and meanings are those of ModelArts' guide to MoXing.
"""

from __future__ import annotations

import builtins
import glob as _glob
import os
import shutil
from typing import IO, TYPE_CHECKING, Iterator, NamedTuple, Sequence

from npu_shim._host.moxing.paths import is_obs_path, to_local_path, with_local_paths

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Text, Value


class Stat(NamedTuple):
    """The answer of ``stat``: the size in bytes, the time of the last change in ns, and True for a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


class File:
    """A file that is read or written as by ``open``. It is closed at the end of a ``with`` block.

    Args:
        url: its path.
        mode: as of ``open``.
    """

    def __init__(self, url: str, mode: str = "r") -> None:
        self.url = url
        path = to_local_path(url)
        if set(mode) & set("wax"):
            _make_parent_folder(path)
        self._stream: IO[Value] = builtins.open(path, mode)

    def __getattr__(self, name: str) -> Value:
        return getattr(self._stream, name)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Value]:
        return iter(self._stream)

    def read(self, n: int = -1) -> Text:
        """Return the next ``n`` characters or bytes; by default all."""
        return self._stream.read(n)

    def write(self, data: Text) -> int:
        """Write a text, or bytes in a binary mode."""
        return self._stream.write(data)

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return get_size(self.url)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def exists(url: str) -> bool:
    """Return True if there is a file or folder of this path."""
    return os.path.exists(to_local_path(url))


def is_directory(url: str) -> bool:
    """Return True if there is a folder of this path."""
    return os.path.isdir(to_local_path(url))


def list_directory(url: str, recursive: bool = False, only_dir: bool = False) -> list[str]:
    """Return the names of the files and folders in a folder.

    Args:
        url: the folder.
        recursive: True for all below it, as paths from the folder.
        only_dir: True for folders only.
    Raises:
        OSError: there is no such folder.
    """
    folder = to_local_path(url)
    names = sorted(os.listdir(folder))
    if recursive:
        names = [
            os.path.relpath(os.path.join(base, name), folder)
            for base, folders, files in os.walk(folder)
            for name in sorted(folders + files)
        ]
    return [name for name in names if not only_dir or os.path.isdir(os.path.join(folder, name))]


def glob(url: str) -> list[str]:
    """Return the paths that match a pattern, as paths of OBS if it is one."""
    pattern = to_local_path(url)
    paths = sorted(_glob.glob(pattern))
    if not is_obs_path(url):
        return paths
    root = url[: url.index("://") + 3]
    return [root + os.path.relpath(path, to_local_path(root)) for path in paths]


def walk(url: str, topdown: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield a folder as a local path, the folders in it and the files in it, as ``os.walk`` does."""
    return os.walk(to_local_path(url), topdown)


def make_dirs(url: str) -> None:
    """Make a folder and the folders around it, unless they exist."""
    os.makedirs(to_local_path(url), exist_ok=True)


def mk_dir(url: str) -> None:
    """Make a folder, unless it exists.

    Raises:
        FileNotFoundError: the folder around it does not exist.
    """
    if not is_directory(url):
        os.mkdir(to_local_path(url))


def read(url: str, binary: bool = False) -> Text:
    """Return the text of a file, or its bytes with ``binary=True``."""
    with File(url, "rb" if binary else "r") as stream:
        return stream.read()


def write(url: str, data: Text, binary: bool = False) -> None:
    """Write a text, or bytes with ``binary=True``, in place of what a file has."""
    with File(url, "wb" if binary else "w") as stream:
        stream.write(data)


def append(url: str, data: Text, binary: bool = False) -> None:
    """Write a text, or bytes with ``binary=True``, at the end of a file."""
    with File(url, "ab" if binary else "a") as stream:
        stream.write(data)


def copy(src_url: str, dst_url: str) -> None:
    """Copy a file, to a path or into a folder that exists.

    Raises:
        IsADirectoryError: the source is a folder.
    """
    source, target = to_local_path(src_url), to_local_path(dst_url)
    if os.path.isdir(source):
        raise IsADirectoryError(f"{src_url!r} is a folder. Copy it with mox.file.copy_parallel.")
    _make_parent_folder(target)
    shutil.copyfile(source, os.path.join(target, os.path.basename(source)) if os.path.isdir(target) else target)


def copy_parallel(
    src_url: str,
    dst_url: str,
    file_list: Sequence[str] | None = None,
    threads: int = 16,
    is_processing: bool = True,
    use_queue: bool = True,
) -> None:
    """Copy what is in a folder, with all folders in it, into another one; a file is copied as by ``copy``.

    Args:
        src_url: the folder or file.
        dst_url: the folder, which is made if it does not exist, or the path of the file.
        file_list: the paths from the source of the files to copy; by default all.
        threads, is_processing, use_queue: how ModelArts copies from OBS. They have no effect on local files.
    Raises:
        FileNotFoundError: there is no such source.
    """
    del threads, is_processing, use_queue
    source, target = to_local_path(src_url), to_local_path(dst_url)
    if not os.path.isdir(source):
        copy(src_url, dst_url)
        return
    if os.path.realpath(target) == os.path.realpath(source):
        return
    # Before the target is made, which may be below the source.
    below = list_directory(src_url, recursive=True) if file_list is None else list(file_list)
    os.makedirs(target, exist_ok=True)
    for name in below:
        path = os.path.join(source, name)
        if os.path.isdir(path):
            os.makedirs(os.path.join(target, name), exist_ok=True)
        else:
            copy(path, os.path.join(target, name))


def rename(src_url: str, dst_url: str) -> None:
    """Give a file or folder another path."""
    target = to_local_path(dst_url)
    _make_parent_folder(target)
    shutil.move(to_local_path(src_url), target)


def remove(url: str, recursive: bool = False) -> None:
    """Remove a file; with ``recursive=True`` also a folder with all that is in it."""
    path = to_local_path(url)
    if recursive and os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def stat(url: str) -> Stat:
    """Return size and time of a file or folder."""
    status = os.stat(to_local_path(url))
    return Stat(status.st_size, status.st_mtime_ns, is_directory(url))


def get_size(url: str, recursive: bool = False) -> int:
    """Return the size of a file in bytes; with ``recursive=True`` that of all files in a folder."""
    path = to_local_path(url)
    if not recursive or not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(base, name)) for base, _, files in os.walk(path) for name in files)


def set_auth(**_: object) -> None:
    """Do nothing: local files need no keys."""


def shift(old: str, new: str) -> None:
    """Let the functions of Python take paths of OBS, with ``shift("os", "mox")``; ``shift("mox", "os")`` ends this.

    Raises:
        ValueError: for other arguments.
    """
    if (old, new) not in (("os", "mox"), ("mox", "os")):
        raise ValueError(f"mox.file.shift({old!r}, {new!r}) is not allowed. Give 'os' and 'mox', or 'mox' and 'os'.")
    for owner, name in _SHIFTED:
        function = getattr(owner, name)
        own = getattr(function, "of_python", None)
        if new == "mox" and own is None:
            shifted = with_local_paths(function)
            shifted.of_python = function  # type: ignore[attr-defined]
            setattr(owner, name, shifted)
        elif new == "os" and own is not None:
            setattr(owner, name, own)


_SHIFTED: tuple[tuple[object, str], ...] = (
    (builtins, "open"),
    *((os, name) for name in ("listdir", "makedirs", "mkdir", "remove", "rename", "rmdir", "stat", "unlink", "walk")),
    *((os.path, name) for name in ("exists", "getsize", "isdir", "isfile")),
    *((shutil, name) for name in ("copy", "copyfile", "copytree", "move", "rmtree")),
    (_glob, "glob"),
)


def _make_parent_folder(path: str) -> None:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
