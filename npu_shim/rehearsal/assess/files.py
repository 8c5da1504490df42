"""Leave no file behind: what the script writes before its first step is removed, and what it overwrites is restored."""

from __future__ import annotations

import builtins
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, Callable

from npu_shim._host import host_env

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, Result, Value


_OPEN, _MKDIR = builtins.open, os.mkdir
_LARGE = 256 << 20  # bytes; a larger file is not copied before it is overwritten


class Written:
    """Records the files and folders that this process writes through Python and tf.io.gfile.

    Downloads below Keras' cache stay, because the next run needs them too. What TensorFlow's kernels write is not seen
    here: checkpoints, event files and exports are skipped, see ``capture``.
    """

    def __init__(self) -> None:
        self._created: dict[str, None] = {}
        self._copies: dict[str, str] = {}
        self._undo: list[Callable[[], None]] = []
        self._cache = os.path.abspath(host_env.process_environ().get("KERAS_HOME") or os.path.expanduser("~/.keras"))
        self._store = tempfile.mkdtemp(prefix="npu_shim_assess_")

    def start(self) -> None:
        """Begin to record."""

        def open_recorded(file: Value, mode: str = "r", *args: Value, **kwargs: Value) -> Result:
            if isinstance(mode, str) and set(mode) & set("wax+"):
                self.note(file)
            return _OPEN(file, mode, *args, **kwargs)

        def mkdir_recorded(path: Value, *args: Value, **kwargs: Value) -> None:
            self.note(path)
            _MKDIR(path, *args, **kwargs)

        self._replace(builtins, "open", open_recorded)
        self._replace(os, "mkdir", mkdir_recorded)

    def follow_tensorflow(self) -> None:
        """Record what tf.io.gfile writes, once the script has imported TensorFlow."""
        from npu_shim._tensorflow import tf_api

        gfile = tf_api.v1.gfile

        def make(original: Function) -> Function:
            def noted(path: Value, *args: object, **kwargs: object) -> Result:
                self.note_all(path)
                return original(path, *args, **kwargs)

            return noted

        for name in ("MakeDirs", "MkDir"):
            self._replace(gfile, name, make(getattr(gfile, name)))
        for name in ("makedirs", "mkdir"):
            self._replace(tf_api.tf.io.gfile, name, make(getattr(tf_api.tf.io.gfile, name)))

    def note(self, path: Value) -> None:
        """Remember a path that is about to be written."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        full = os.path.abspath(os.fsdecode(path))
        if (
            full.startswith((self._cache + os.sep, self._store, "/dev/", "/proc/", "/sys/"))
            or full in self._created
            or full in self._copies
        ):
            return
        if not os.path.lexists(full):
            self._created[full] = None
        elif os.path.isfile(full) and os.path.getsize(full) <= _LARGE:
            self._copies[full] = os.path.join(self._store, str(len(self._copies)))
            shutil.copy2(full, self._copies[full])

    def note_all(self, path: Value) -> None:
        """Remember a folder that is about to be made with its parents."""
        full = os.path.abspath(os.fsdecode(path))
        missing = []
        while not os.path.exists(full) and os.path.dirname(full) != full:
            missing.append(full)
            full = os.path.dirname(full)
        for each in reversed(missing):
            self.note(each)

    def undo(self) -> None:
        """Stop to record, remove what was created and restore what was overwritten."""
        while self._undo:
            self._undo.pop()()
        for path in reversed(list(self._created)):
            if os.path.isdir(path) and not os.path.islink(path):
                if not os.listdir(path):
                    os.rmdir(path)
            elif os.path.lexists(path):
                os.remove(path)
        for path, copy in self._copies.items():
            shutil.copy2(copy, path)
        shutil.rmtree(self._store)

    def _replace(self, owner: Any, name: str, value: Value) -> None:
        original = getattr(owner, name)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, original))
