"""Record scalar summaries that a script writes itself."""

from __future__ import annotations

import re

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_recording
from npu_shim._tensorflow.types import EventWriter, Function, Message, Result, Structure
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import SUMMARY
from npu_shim.rehearsal.recording.names import OWN_WRITER
from npu_shim.rehearsal.recording.recorder import Watcher
from npu_shim.rehearsal.recording.saved_graphs import add_note

# tags of what measures speed, and of queues: how full they are depends on threads
_BY_CHANCE = re.compile(r".*(/sec|_per_sec(ond)?(/.*)?|fraction_(of|over)_\d+(_of_\d+)?_full(_\d+)?|queue_size)$")


def watch_summaries(recorder: Watcher) -> None:
    """Record ``tf.summary.scalar`` of TensorFlow 2, and protobufs that a script gives to a FileWriter."""

    def add_summary(
        original: Function, writer: EventWriter, summary: Message, *args: object, **kwargs: object
    ) -> Result:
        # bytes come from a session, which records them, and those of an evaluation are recorded as metrics
        is_own = getattr(writer, OWN_WRITER, False)
        if not isinstance(summary, bytes) and not is_own and not recorder.is_inside("evaluate"):
            recorder.record_values(SUMMARY, scalars_of(summary.SerializeToString()))
        return original(writer, summary, *args, **kwargs)

    for owner in tf.compat.v1.summary.FileWriter.__mro__[:-1]:
        methods.wrap_methods(owner, ("add_summary",), add_summary)
    module = tf.compat.v2.summary
    original = module.scalar

    def scalar(name: str, data: Structure, *args: object, **kwargs: object) -> Result:
        def record(value: np.ndarray) -> np.ndarray:
            recorder.record_values(SUMMARY, [(name, np.asarray(value))])
            return np.zeros((), np.int64)

        if _BY_CHANCE.match(name):
            return original(name, data, *args, **kwargs)
        graph = tf.compat.v1.get_default_graph()
        if tf.executing_eagerly():
            record(np.asarray(data))
        elif recorder.adds_summary_ops and getattr(graph, "building_function", False):
            with tf.control_dependencies(tf_recording.function_call_ops(graph)):
                add_note(record, [data], tf.int64)
        return original(name, data, *args, **kwargs)

    for owner in (module, tf.summary):
        if owner.scalar is original:
            owner.scalar = scalar


def scalars_of(serialized: bytes) -> list[tuple[str, np.ndarray]]:
    """Return tag and value of the scalars of a serialized tf.compat.v1.Summary."""
    summary = tf.compat.v1.Summary.FromString(serialized)
    return [
        (value.tag, np.asarray(value.simple_value, np.float32))
        for value in summary.value
        if value.HasField("simple_value") and not _BY_CHANCE.match(value.tag)
    ]
