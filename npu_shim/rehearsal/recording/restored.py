"""Note the checkpoints from which a script starts. One that this run has written itself is none of them."""

from __future__ import annotations

import os
import time

import tensorflow as tf

from npu_shim._tensorflow import tf_files
from npu_shim._tensorflow.types import Function, Result
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.recorder import Recorder


def watch_restores(recorder: Recorder) -> None:
    """Note path and line of each checkpoint and file of weights that is read before the first training step."""
    begun = time.time()

    def restore(original: Function, owner: object, *args: object, **kwargs: object) -> Result:
        path = next(filter(None, map(tf_files.path_text_or_none, (*args, *kwargs.values()))), None)
        if path and not recorder.steps and _existed_before(path, begun):
            recorder.writer.write_event("restored", path=_path_below_current_folder(path), line=recorder.script_line())
        return original(owner, *args, **kwargs)

    for saver in tf_files.savers():
        methods.wrap_methods(saver, ("restore",), restore)
    methods.wrap_methods(tf.keras.Model, ("load_weights",), restore)


def _existed_before(path: str, begun: float) -> bool:
    files = tf.io.gfile.glob(f"{path}*")
    return bool(files) and max(tf.io.gfile.stat(file).mtime_nsec for file in files) < begun * 1e9


def _path_below_current_folder(path: str) -> str:
    """Return a path below the current folder without that folder."""
    relative = path if "://" in path else os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
