"""Private parts of TensorFlow that write files: its file system, savers, event files and records."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType
from typing import Callable

import tensorflow as tf
from tensorflow.python.framework import tensor_util as _tensor_util
from tensorflow.python.lib.io import file_io as _file_io
from tensorflow.python.ops import gen_summary_ops as _gen_summary_ops
from tensorflow.python.summary.writer import event_file_writer as _event_file_writer

from npu_shim._tensorflow.types import Function, Result, Saver, Value

_EVENTS = "events.out.tfevents"  # a writer adds the time and the host


class _FileSystem:
    """The file system of TensorFlow, which notes what it is about to write."""

    def __init__(self, module: ModuleType, notes: Value) -> None:
        self._module = module
        calls: dict[str, Function] = {
            "DeleteFile": lambda path, *rest: notes.note_replace(path, creates=False),
            "DeleteRecursively": lambda path, *rest: notes.note_replace(path, creates=False),
            "CreateDir": lambda path, *rest: notes.note_folder(path),
            "RecursivelyCreateDir": lambda path, *rest: notes.note_folder(path),
            "CopyFile": lambda source, target, *rest: notes.note_write(target),
            "EventsWriter": lambda path, *rest: _note_events(notes, os.path.dirname(os.fsdecode(path))),
        }
        for name in ("WritableFile", "CreateWritableFile"):
            calls[name] = lambda path, *rest: notes.note_write(path)

        def rename(source: Value, target: Value, *rest: object) -> None:
            notes.note_replace(source, creates=False)
            notes.note_replace(target)

        calls["RenameFile"] = rename
        for name, note in calls.items():
            if hasattr(module, name):
                setattr(self, name, _call_after_note(getattr(module, name), note))

    def __getattr__(self, name: str) -> Value:
        return getattr(self._module, name)


def watch_written_files(notes: Value) -> list[Callable[[], None]]:
    """Note the files that TensorFlow and HDF5 write from now on, before they are written.

    Args:
        notes: rehearsal.files.kept.Kept.
    Returns:
        functions that end it.
    """
    undo: list[Callable[[], None]] = []

    def replace(owner: object, name: str, value: Value) -> None:
        original = vars(owner)[name]
        setattr(owner, name, value)
        undo.append(lambda: setattr(owner, name, original))

    def call_note_before(owner: object, name: str, note: Function) -> None:
        replace(owner, name, _call_after_note(vars(owner)[name], note))

    for module in (_file_io, _event_file_writer):
        for name in ("_pywrap_file_io", "_pywrap_events_writer", "pywrap_tensorflow"):
            if name in vars(module):
                replace(module, name, _FileSystem(vars(module)[name], notes))
    call_note_before(tf.io.TFRecordWriter, "__init__", lambda writer, path, *args, **kwargs: notes.note_write(path))
    for owner in savers():
        call_note_before(owner, "save", lambda saver, *args, **kwargs: _note_save(notes, *args, **kwargs))
    call_note_before(
        _gen_summary_ops,
        "create_summary_file_writer",
        lambda writer, logdir, *args, **kwargs: _note_events(notes, path_text_or_none(logdir)),
    )
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        return undo
    call_note_before(h5py.File, "__init__", lambda *args, **kwargs: _note_h5(notes, *args, **kwargs))
    return undo


def savers() -> list[Saver]:
    """Return the class that sessions and Estimator save with, and that of tf.train.Checkpoint and Keras."""
    is_old = importlib.util.find_spec("tensorflow.python.checkpoint") is None
    module = "tensorflow.python.training.tracking.util" if is_old else "tensorflow.python.checkpoint.checkpoint"
    return [tf.compat.v1.train.Saver, importlib.import_module(module).TrackableSaver]


def _call_after_note(original: Function, note: Function) -> Function:
    def noted(*args: object, **kwargs: object) -> Result:
        note(*args, **kwargs)
        return original(*args, **kwargs)

    return noted


def _note_save(
    notes: Value, *args: object, save_path: Value = None, file_prefix: Value = None, **kwargs: object
) -> None:
    """Note the prefix that ``save`` is given by name, or else at the first place after a session, if any."""
    given = [save_path, file_prefix, *args[:2]]
    path = next((text for text in map(path_text_or_none, given) if text), None)
    if path:
        notes.note_prefix(path, is_checkpoint=True)


def _note_events(notes: Value, folder: Value) -> None:
    if folder:
        notes.note_folder(folder)
        notes.note_prefix(os.path.join(folder, _EVENTS))


def _note_h5(notes: Value, file: Value, name: Value, mode: Value = None, *args: object, **kwargs: object) -> None:
    if mode != "r" and (mode is not None or importlib.import_module("h5py").version.version_tuple < (3,)):
        notes.note_write(name)


def path_text_or_none(value: Value) -> str | None:
    """Return a path, also from a tensor that is known; None for anything else."""
    if isinstance(value, tf.Tensor):
        constant = _tensor_util.constant_value(value)
        value = None if constant is None else constant.item() if hasattr(constant, "item") else constant
    return os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else None
