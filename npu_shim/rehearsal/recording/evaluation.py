"""Record the evaluation in loops of scripts: metrics of Keras, calls of models and of tf.functions."""

from __future__ import annotations

import types

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow.types import Function, Metric, Result, Structure
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import CALL, RESULT
from npu_shim.rehearsal.recording.recorder import Recorder

_KERAS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")  # they are recorded


def watch_metrics(recorder: Recorder) -> None:
    """Record what metrics of Keras return in eager code of the script."""

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
            recorder.record_values(RESULT, [(metric.name, np.asarray(part)) for part in tf.nest.flatten(value)])
        return value

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
