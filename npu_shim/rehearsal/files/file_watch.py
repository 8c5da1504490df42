"""Note the files that this process writes through Python and TensorFlow, before it writes them."""

from __future__ import annotations

import builtins
import io
import os
import pathlib
import shutil
from typing import Callable, Iterator

from npu_shim._tensorflow.types import Function, Module, Result, Value
from npu_shim.rehearsal.files.kept import Kept

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Functions around those that write files.

    Args:
        kept: notes the files.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        """Watch what Python writes, programs that it starts excepted."""
        for owner in (builtins, io):
            self._wrap_function(owner, "open", self._note_open)
        self._wrap_function(os, "open", self._note_os_open)
        for names, note in (
            (("mkdir",), self._note_new_folder),
            (("rmdir", "remove", "unlink"), self._note_deletion),
            (("truncate",), self._note_truncation),
            (("rename", "replace"), self._note_both_paths),
            (("symlink", "link"), self._note_second_path),
        ):
            for name in names:
                self._wrap_function(os, name, note)
        self._wrap_function(shutil, "rmtree", self._note_deletion)

    def follow_tensorflow(self) -> None:
        """Watch what TensorFlow writes, which is imported now."""
        from npu_shim._tensorflow import tf_files

        self._undo += tf_files.watch_written_files(self._kept)

    def stop(self) -> None:
        """Restore the functions."""
        while self._undo:
            self._undo.pop()()

    # --- called with the arguments of the functions

    def _note_open(self, file: object, mode: object = "r", *args: object, **kwargs: object) -> None:
        if isinstance(mode, str) and set(mode) & set("wax+"):
            self._kept.note_write(file)

    def _note_os_open(self, path: object, flags: int, *args: object, dir_fd: object = None, **kwargs: object) -> None:
        if flags & _WRITES and dir_fd is None:
            self._kept.note_write(path)

    def _note_new_folder(self, path: object, *args: object, dir_fd: object = None, **kwargs: object) -> None:
        if dir_fd is None:
            self._kept.note_folder(path)

    def _note_deletion(self, path: object, *args: object, dir_fd: object = None, **kwargs: object) -> None:
        if dir_fd is None:
            self._kept.note_replace(path, creates=False)

    def _note_truncation(self, path: object, *args: object) -> None:
        self._kept.note_write(path)

    def _note_both_paths(self, src: object, dst: object, **kwargs: object) -> None:
        if not any(value is not None for value in kwargs.values()):
            self._kept.note_replace(src, creates=False)
            self._kept.note_replace(dst)

    def _note_second_path(self, src: object, dst: object, *args: object, **kwargs: object) -> None:
        self._kept.note_replace(dst)

    # ---

    def _wrap_function(self, owner: object, name: str, note: Function) -> None:
        original = getattr(owner, name)
        noted = _Noted(original, note)
        for place in (owner, *_classes_with_os_functions()):
            for attribute, value in list(vars(place).items()):
                if value is original and (place is not owner or attribute == name):
                    setattr(place, attribute, noted)
                    self._undo.append(_setter(place, attribute, value))


class _Noted:
    """A function that notes what it is about to write. As a builtin one, it is no method of a class that has it."""

    def __init__(self, original: Function, note: Function) -> None:
        self._original, self._note = original, note
        self.__name__, self.__doc__ = original.__name__, original.__doc__

    def __call__(self, *args: object, **kwargs: object) -> Result:
        try:
            self._note(*args, **kwargs)
        except TypeError:
            pass  # of wrong arguments: the function itself raises the error
        return self._original(*args, **kwargs)

    def __getattr__(self, name: str) -> Value:
        return getattr(self._original, name)  # shutil.rmtree.avoids_symlink_attacks


def _classes_with_os_functions() -> Iterator[Module]:
    """Yield the classes of Python that have functions of ``os`` as attributes, before Python 3.11."""
    accessor = getattr(pathlib, "_NormalAccessor", None)
    if accessor is not None:
        yield accessor


def _setter(owner: object, name: str, value: Value) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)
