"""Record the evaluation in loops of scripts: metrics of Keras, calls of models and of tf.functions."""

from __future__ import annotations

import functools
import types
import weakref

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation, tf_recording
from npu_shim._tensorflow.types import Function, Graph, Metric, Operation, Result, Structure, Tensor, Value
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import CALL, RESULT
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.saved_graphs import add_note

_KERAS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")  # they are recorded


def watch_metrics(recorder: Recorder) -> None:
    """Record what metrics of Keras return in eager code of the script, and in each run of its tf.functions."""
    latest: weakref.WeakKeyDictionary[Graph, Operation] = weakref.WeakKeyDictionary()  # function -> its last note

    def init(original: Function, metric: Metric, *args: object, **kwargs: object) -> None:
        with recorder.inside("init of a metric") as outermost:
            original(metric, *args, **kwargs)
        if outermost:
            # Methods of the object, which copies of it get as theirs. A function around that of the class would not be
            # converted by AutoGraph.
            metric.npu_shim_result, metric.result = metric.result, types.MethodType(result, metric)

    def result(metric: Metric, *args: object, **kwargs: object) -> Result:
        value = metric.npu_shim_result(*args, **kwargs)
        if tf.executing_eagerly() and not recorder.is_inside(*_KERAS):
            record(metric.name, *tf.nest.flatten(value))
        elif not recorder.is_any_thread_inside(*_KERAS):
            graph = tf.compat.v1.get_default_graph()
            if getattr(graph, "building_function", False):
                note_result(graph, metric.name, [*filter(_is_tensor, tf.nest.flatten(value))])
        return value

    def record(name: str, *parts: np.ndarray) -> np.ndarray:
        recorder.record_values(RESULT, [(name, np.asarray(part)) for part in parts])
        return np.zeros((), np.int64)

    @tf_op_creation.suspend_hooks()
    def note_result(graph: Graph, name: str, parts: list[Tensor]) -> None:
        """Add an op that records a result, after the earlier results in this function."""
        recorder.record_line(RESULT, name)
        earlier = [latest[graph]] if graph in latest else []
        with tf.control_dependencies(earlier + tf_recording.function_call_ops(graph)):
            latest[graph] = add_note(functools.partial(record, name), parts, tf.int64).op

    methods.wrap_methods(tf.keras.metrics.Metric, ("__init__",), init)


def record_call(recorder: Recorder, name: str, given: Structure, result: Structure) -> None:
    """Record the tensors that eager code gives to a model or a function outside a tape, and those that it returns."""
    if tf.executing_eagerly() and not recorder.is_inside(*_KERAS):
        rows = [(f"{name} input {number}", value) for number, value in enumerate(arrays_of(given))]
        rows += [(f"{name} output {number}", value) for number, value in enumerate(arrays_of(result))]
        recorder.record_values(CALL, rows)


def arrays_of(structure: Structure) -> list[np.ndarray]:
    """Return the tensors and arrays of a structure."""
    flat = tf.nest.flatten(structure)
    return [np.asarray(value) for value in flat if isinstance(value, (tf.Tensor, np.ndarray))]


def _is_tensor(value: Value) -> bool:
    return isinstance(value, (tf.Tensor, tf.Variable))
