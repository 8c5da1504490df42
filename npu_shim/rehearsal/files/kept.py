"""Take back what a run of a script writes: what it creates is removed, what it changes or deletes is restored.

A process notes a file before it writes it, in a journal beside the copies. So the changes of others in the same folders
stay, and a process that is killed loses nothing: its copies and the journal are still there.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import stat
import threading
from dataclasses import dataclass
from typing import Iterator, Sequence

from npu_shim._host import host_env

JOURNAL = "files.jsonl"
STORE = "kept"  # the folder of the copies in that of a run
_SYSTEM = ("/dev/", "/proc/", "/sys/")
_OPEN = os.open  # the functions of this module as they are before files are watched


@dataclass(frozen=True)
class _Note:
    """A line of the journal.

    Attributes:
        created: a file or folder that a process creates.
        prefix, before: the start of the paths of files that it adds, and those that had it before.
        path, copy, mode: a file or folder that was there before, with the name of its copy, or its mode.
    """

    created: str = ""
    prefix: str = ""
    before: Sequence[str] = ()
    path: str = ""
    copy: str = ""
    mode: int = 0


class Kept:
    """The files that this process changes, and copies of those that were there before.

    Downloads in the usual caches are not noted, because the next run needs them, too.

    Args:
        store: a folder for the journal and the copies. Several processes may share it.
        excluded_folders: folders whose files are not noted.
    Attributes:
        stays: True to leave what is written.
    """

    stays = False

    def __init__(self, store: str, excluded_folders: Sequence[str] = ()) -> None:
        os.makedirs(store, exist_ok=True)
        self._store = os.path.realpath(store)
        self._apart = (
            *_SYSTEM,
            *(os.path.realpath(path) + os.sep for path in (store, *excluded_folders, *_cache_folders())),
        )
        self._created: set[str] = set()
        self._copies: dict[str, str] = {}  # path -> copy
        self._prefixes: dict[str, set[str]] = {}  # prefix -> the files that had it before
        self._lock = threading.RLock()
        self._count = 0

    def note_write(self, path: object) -> None:
        """Note a file that is about to be opened for writing."""
        with self._lock:
            full = self._path_to_note(path, follows_link=True)
            if full is None:
                return
            if not os.path.lexists(full):
                self._note_created(full)
            elif os.path.isfile(full) and (full not in self._copies or _is_same_file(full, self._copies[full])):
                self._keep_copy(full, is_replaced=False)

    def note_replace(self, path: object, creates: bool = True) -> None:
        """Note a file or folder that is about to be replaced or made, or deleted with ``creates=False``."""
        with self._lock:
            full = self._path_to_note(path)
            if full is None:
                return
            if not os.path.lexists(full):
                if creates:
                    self._note_created(full)
            elif os.path.isdir(full) and not os.path.islink(full):
                self._keep_tree(full)
            elif full not in self._copies:
                self._keep_copy(full, is_replaced=True)

    def note_folder(self, path: object) -> None:
        """Note a folder that is about to be made with its parents."""
        with self._lock:
            full = self._path_to_note(path)
            missing = []
            while full and not os.path.exists(full) and os.path.dirname(full) != full:
                missing.append(full)
                full = os.path.dirname(full)
            if missing:
                self._note_created(missing[-1])

    def note_prefix(self, path: object, is_checkpoint: bool = False) -> None:
        """Note the files whose paths begin so, which a kernel of TensorFlow adds, or changes if it is a checkpoint."""
        with self._lock:
            full = self._path_to_note(path)
            if full is None:
                return
            if not os.path.isdir(os.path.dirname(full)):
                self.note_folder(os.path.dirname(full))
                return
            before = [file for file in _paths_with_prefix(full) if not self._is_created(file)]
            if full not in self._prefixes:
                self._prefixes[full] = set(before)
                self._write_note(prefix=full, before=before)
            for file in before if is_checkpoint else ():
                if ".data-" in file:  # TensorFlow renames a new file, but opens the index and those of other forms
                    self.note_replace(file)
                else:
                    self.note_write(file)

    def changed_files(self) -> list[str]:
        """Return the files that were there before and have another content now."""
        both = [(path, copy) for path, copy in self._copies.items() if os.path.isfile(path)]
        return [path for path, copy in both if not filecmp.cmp(path, copy, shallow=False)]

    # ---

    def _path_to_note(self, path: object, follows_link: bool = False) -> str | None:
        """Return the full path; None if it is not to be noted. Links in the folders of the path are followed."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None  # a file descriptor
        text = os.fsdecode(path)
        text = text[len("file://") :] if text.startswith("file://") else text
        if "://" in text:
            return None  # no file of this machine
        full = os.path.abspath(text)
        folder, name = os.path.split(full)
        full = os.path.realpath(full) if follows_link else os.path.join(os.path.realpath(folder), name)
        return None if (full + os.sep).startswith(self._apart) or self._is_created(full) else full

    def _is_created(self, full: str) -> bool:
        """Return True for what is below a folder, or has a prefix, that this process has created."""
        above = full
        while above not in self._created:
            if os.path.dirname(above) == above:
                return any(full.startswith(prefix) and full not in old for prefix, old in self._prefixes.items())
            above = os.path.dirname(above)
        return True

    def _note_created(self, full: str) -> None:
        self._created.add(full)
        self._write_note(created=full)

    def _keep_copy(self, full: str, is_replaced: bool) -> None:
        """Keep a file or link. A link of the file system is enough if the file itself is not changed."""
        self._count += 1
        copy = os.path.join(self._store, f"{os.getpid()}_{self._count}")
        if os.path.islink(full):
            os.symlink(os.readlink(full), copy)
        elif is_replaced:
            _link_or_copy(full, copy)
        else:
            shutil.copy2(full, copy)
        self._copies[full] = copy
        self._write_note(path=full, copy=os.path.basename(copy))

    def _keep_tree(self, full: str) -> None:
        for folder, folders, names in os.walk(full):
            self._write_note(path=folder, mode=stat.S_IMODE(os.stat(folder).st_mode))
            for name in names + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
                self.note_replace(os.path.join(folder, name))

    def _write_note(self, **fields: object) -> None:
        """Write a line at once. Other processes write to the same file."""
        line = json.dumps(fields).encode("ascii") + b"\n"
        file = _OPEN(os.path.join(self._store, JOURNAL), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def restore_files(store: str) -> None:
    """Remove what the processes of a store have created, restore what they have changed or deleted, remove the store.

    Raises:
        OSError: if a file cannot be restored. The store stays.
    """
    created: list[str] = []
    before: dict[str, _Note] = {}  # by path, the last note of what was there before
    for note in _read_notes(store):
        if note.prefix:
            created += [path for path in _paths_with_prefix(note.prefix) if path not in note.before]
        elif note.created:
            created.append(note.created)
        elif not (note.path + os.sep).startswith(tuple(path + os.sep for path in created)):
            before[note.path] = note  # else another process has created it
    for path in reversed(created):
        _remove_path(path)
    for path, note in before.items():
        if note.copy:
            _restore_file(path, os.path.join(store, note.copy))
        else:
            os.makedirs(path, exist_ok=True)
            os.chmod(path, note.mode)
    shutil.rmtree(store, ignore_errors=True)


def leftover_stores(folder: str) -> list[str]:
    """Return the stores below a folder, which a run that was killed has left."""
    return [path for path, _, names in os.walk(folder) if JOURNAL in names]


def leftover_stores_with_copies(folder: str) -> list[str]:
    """Return those that have copies of the user's files."""
    return [path for path in leftover_stores(folder) if _has_copies(path)]


def _has_copies(store: str) -> bool:
    try:
        return any(note.copy for note in _read_notes(store))
    except (ValueError, TypeError):  # of another release: the user must look
        return True


def _read_notes(store: str) -> Iterator[_Note]:
    path = os.path.join(store, JOURNAL)
    if not os.path.exists(path):
        return
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.endswith("\n"):
                yield _Note(**json.loads(line))


def _restore_file(path: str, copy: str) -> None:
    if os.path.lexists(path) and (_is_same_file(path, copy) or _type_time_and_size(path) == _type_time_and_size(copy)):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = f"{path}.npu_shim_restored"
    if os.path.islink(copy):
        os.symlink(os.readlink(copy), new)
    else:
        _link_or_copy(copy, new)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    os.replace(new, path)


def _paths_with_prefix(prefix: str) -> list[str]:
    folder, start = os.path.split(prefix)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.startswith(start)]


def _remove_path(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def _link_or_copy(path: str, new: str) -> None:
    try:
        os.link(path, new)
    except OSError:  # another file system, or one without links
        shutil.copy2(path, new)


def _is_same_file(path: str, other: str) -> bool:
    one, two = os.lstat(path), os.lstat(other)
    return (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)


def _type_time_and_size(path: str) -> tuple[int, int, int]:
    status = os.lstat(path)
    return stat.S_IFMT(status.st_mode), status.st_mtime_ns, status.st_size


def _cache_folders() -> list[str]:
    environ = host_env.process_environ()
    keras, cache = environ.get("KERAS_HOME") or "~/.keras", environ.get("XDG_CACHE_HOME") or "~/.cache"
    return [os.path.expanduser(path) for path in (keras, cache, "~/tensorflow_datasets")]
