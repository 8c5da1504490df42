"""Record the work of the ranks of a job together: what collectives carry, and the checkpoints that a rank writes."""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow.types import Function, Result, Structure, Tensors
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.recorder import Recorder

_REDUCE = ("allreduce", "reduce", "reduce_scatter", "allgather", "allgather_with_counts", "alltoall", "alltoallv")
_SAVE = "save of a checkpoint"


def watch_collectives(recorder: Recorder) -> None:
    """Count the elements of floats that collectives reduce or gather, and note the first broadcast of floats."""

    def reduce(original: Function, group: ProcessGroup, tensors: Tensors, *args: object, **kwargs: object) -> Result:
        with recorder.lock:
            recorder.reduced += _count_floats(tensors, kwargs.get("type_name"))
        return original(group, tensors, *args, **kwargs)

    def broadcast(original: Function, group: ProcessGroup, tensors: Tensors, *args: object, **kwargs: object) -> Result:
        if not recorder.has_broadcast and _count_floats(tensors):
            recorder.has_broadcast = True
            recorder.writer.write_event("note", broadcast=True)
        return original(group, tensors, *args, **kwargs)

    methods.wrap_methods(ProcessGroup, _REDUCE, reduce)
    methods.wrap_methods(ProcessGroup, ("broadcast",), broadcast)


def watch_checkpoints(recorder: Recorder) -> None:
    """Note the path of each checkpoint and model that this process writes."""

    def save(original: Function, owner: object, *args: object, **kwargs: object) -> Result:
        with recorder.inside(_SAVE) as outermost:
            given = [value for value in (*args, *kwargs.values()) if isinstance(value, (str, os.PathLike))]
            path = next(iter(given), getattr(owner, "directory", None))  # that of a manager
            if outermost and path:  # before the call, which may fail where two ranks write
                recorder.writer.write_event(
                    "saved", path=os.path.realpath(os.fspath(path)), line=recorder.script_line()
                )
            return original(owner, *args, **kwargs)

    methods.wrap_methods(tf.compat.v1.train.Saver, ("save",), save)
    methods.wrap_methods(tf.keras.Model, ("save", "save_weights"), save)
    for owner in {tf.train.Checkpoint, tf.compat.v1.train.Checkpoint, tf.train.CheckpointManager}:
        methods.wrap_methods(owner, ("save", "write"), save)


def _count_floats(tensors: Structure, type_name: object = None) -> int:
    """Return the number of elements of one or several arrays of floats."""
    several = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    return sum(
        np.size(tensor)
        for tensor in several
        if np.asarray(tensor).dtype.kind in "fc" or str(type_name).startswith("bfloat")
    )
