"""Record the evaluation in loops of scripts: metrics of Keras, calls of models, and variables at the end."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import script_frames, tf_recording
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.names import plain_name
from npu_shim.rehearsal.recording.recorder import CALL, RESULT, Recorder

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, KerasModel, Metric, Result, Structure, Variable

_KERAS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")  # they are recorded
_MOST_VARIABLES = 1000


def watch_metrics(recorder: Recorder) -> None:
    """Record what metrics of Keras return in eager code of the script."""

    def init(original: Function, metric: Metric, *args: object, **kwargs: object) -> None:
        outermost = recorder.enter("init of a metric")
        try:
            original(metric, *args, **kwargs)
        finally:
            recorder.leave("init of a metric")
        if outermost:
            # Methods of the object, which copies of it get as theirs. A function around that of the class would not be
            # converted by AutoGraph.
            metric.npu_shim_result, metric.result = metric.result, types.MethodType(result, metric)

    def result(metric: Metric, *args: object, **kwargs: object) -> Result:
        value = metric.npu_shim_result(*args, **kwargs)
        if tf.executing_eagerly() and not recorder.is_inside(*_KERAS):
            recorder.values(RESULT, [(metric.name, np.asarray(each)) for each in tf.nest.flatten(value)])
        return value

    methods.wrap(tf.keras.metrics.Metric, ("__init__",), init)


def record_call(recorder: Recorder, model: KerasModel, given: Structure, result: Structure) -> None:
    """Record the tensors that a model is called with in eager code outside a tape, and those that it returns."""
    if tf.executing_eagerly() and not recorder.is_inside(*_KERAS):
        rows = [(f"{model.name} input {number}", value) for number, value in enumerate(arrays(given))]
        if rows:
            rows += [(f"{model.name} output {number}", value) for number, value in enumerate(arrays(result))]
            recorder.values(CALL, rows)


def arrays(structure: Structure) -> list[np.ndarray]:
    """Return the tensors and arrays of a structure."""
    flat = tf.nest.flatten(structure)
    return [np.asarray(each) for each in flat if isinstance(each, (tf.Tensor, np.ndarray))]


class FinalVariables:
    """The variables of models that the script calls in eager code, and those that it makes itself.

    Args:
        recorder: receives their values at the end of the script.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._models: dict[int, KerasModel] = {}
        self._own: list[Variable] = []
        recorder.at_end.append(self._record)
        methods.wrap(tf.Variable, ("__init__",), self._init)

    def model(self, model: KerasModel) -> None:
        """Take note of a model."""
        self._models.setdefault(id(model), model)

    def _init(self, original: Function, variable: Variable, *args: object, **kwargs: object) -> None:
        outermost = self._recorder.enter("init of a variable")
        try:
            original(variable, *args, **kwargs)
        finally:
            self._recorder.leave("init of a variable")
        if (
            outermost
            and tf_recording.is_resource(variable)
            and len(self._own) < _MOST_VARIABLES
            and script_frames.is_made_by_script()
        ):
            self._own.append(variable)

    def _record(self) -> None:
        if not self._recorder.steps:
            return
        rows: dict[str, Any] = {}
        for model in self._models.values():
            for weight in model.weights:
                rows.setdefault(plain_name(weight), weight.numpy())
        for variable in self._own:
            if not hasattr(variable.handle, "numpy"):
                continue  # of a graph
            name = plain_name(variable)
            same = sum(1 for each in rows if each.partition(" (")[0] == name)
            rows[f"{name} ({same + 1})" if same else name] = np.asarray(variable.read_value())
        if rows:
            self._recorder.final(rows.items())
