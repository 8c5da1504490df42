"""Record what Keras models log, return and hold: fit, evaluate, predict and the calls for one batch."""

from __future__ import annotations

import inspect

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.types import Function, KerasCallback, KerasModel, Logs, Result, Value
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import LOG, METRIC, PREDICTION, UNTRAINED
from npu_shim.rehearsal.recording.methods import Around
from npu_shim.rehearsal.recording.names import plain_name
from npu_shim.rehearsal.recording.recorder import Watcher
from npu_shim.rehearsal.recording.variables import array_of, weights_of

_RETURN = {  # methods that return numbers: their kind, and the call that names them
    **dict.fromkeys(("evaluate", "evaluate_generator"), (METRIC, "evaluate")),
    **dict.fromkeys(("predict", "predict_generator"), (PREDICTION, "predict")),
    "train_on_batch": (LOG, "train_on_batch"),
    "test_on_batch": (METRIC, "test_on_batch"),
    "predict_on_batch": (PREDICTION, "predict_on_batch"),
}


def watch_keras_models(recorder: Watcher) -> None:
    """Record the calls of all Keras models of this process."""

    def fit(original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
        has_callbacks = "callbacks" in inspect.signature(original).parameters  # else it is a loop of the script
        if not has_callbacks or recorder.is_inside("fit"):
            return original(model, *args, **kwargs)
        with recorder.inside("fit"):
            given, kwargs = _with_callback(original, args, kwargs, _recording_callback(recorder))
            result = original(model, *given, **kwargs)
        if recorder.records_tensors:
            _record_final_weights(recorder, model)
        return result

    methods.wrap_methods(tf.keras.Model, ("fit", "fit_generator"), fit)
    for name, (kind, call) in _RETURN.items():
        methods.wrap_methods(tf.keras.Model, (name,), _record_results_of(recorder, kind, call))


def _record_results_of(recorder: Watcher, kind: str, call: str) -> Around:
    """Return a function that calls a method, and records the numbers that it returns."""

    def around(original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
        with recorder.inside(call) as outermost:
            result = original(model, *args, **kwargs)
        if outermost and not tf.is_tensor(result) and (kind != LOG or recorder.count_batch_and_want_logs(0)):
            recorder.record_values(kind, named_results(model, call, result))
        return result

    return around


def named_results(model: KerasModel, call: str, result: Result) -> list[tuple[str, Value]]:
    """Return the numbers that a method returns, with the names of their metrics."""
    if isinstance(result, dict):
        return [(f"{call} {key}", np.asarray(value)) for key, value in result.items()]
    parts = result if isinstance(result, (list, tuple)) else [result]
    names = list(getattr(model, "metrics_names", ())) if not call.startswith("predict") else []
    if "compile_metrics" in names:  # Keras 3: one name for all metrics of compile
        names = [inner.name for metric in model.metrics for inner in getattr(metric, "metrics", [metric])]
    if len(names) != len(parts):
        names = [str(number) for number in range(len(parts))]
    return [(f"{call} {name}", np.asarray(part)) for name, part in zip(names, parts)]


def _with_callback(
    original: Function, args: tuple[Value, ...], kwargs: dict[str, Value], callback: KerasCallback
) -> tuple[tuple[Value, ...], dict[str, Value]]:
    """Return the arguments of fit with one more callback."""
    place = [name for name in inspect.signature(original).parameters if name != "self"].index("callbacks")
    given = args[place] if len(args) > place else kwargs.get("callbacks")
    if given is not None and hasattr(given, "append") and not isinstance(given, list):  # a CallbackList
        given.append(callback)
        return args, kwargs
    several = list(given) if isinstance(given, (list, tuple)) else [given] if given else []
    several.append(callback)
    if len(args) > place:
        return args[:place] + (several,) + args[place + 1 :], kwargs
    return args, {**kwargs, "callbacks": several}


def _recording_callback(recorder: Watcher) -> KerasCallback:
    """Return a callback that records the logs of each batch and epoch."""

    class RecordingCallback(tf.keras.callbacks.Callback):
        """Record logs."""

        def on_train_begin(self, logs: Logs = None) -> None:
            """Take note of a model that is built now."""
            for act in recorder.at_fit:
                act(self.model)

        def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
            """Record the logs of a batch."""
            if recorder.count_batch_and_want_logs(batch):
                recorder.record_values(LOG, _metrics_in_logs("batch", logs))
            if not tf.executing_eagerly() and recorder.claim_step_for_sampling():
                rest = list(self.model.non_trainable_weights)
                recorder.record_values(UNTRAINED, zip(map(plain_name, rest), tf.keras.backend.batch_get_value(rest)))
            if recorder.is_done():
                self.model.stop_training = recorder.has_cut_training = True

        def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
            """Record the logs of an epoch."""
            recorder.record_values(LOG, _metrics_in_logs("epoch", logs))

    callback = RecordingCallback()
    if not recorder.records_tensors:
        tf_keras.keep_tensors_in_logs(callback)
    return callback


def _metrics_in_logs(when: str, logs: Logs) -> list[tuple[str, Value]]:
    return [
        (f"{when} {name}", np.asarray(value))
        for name, value in (logs or {}).items()
        if name not in ("batch", "size") and not tf.is_tensor(value) or hasattr(value, "numpy")
    ]


def _record_final_weights(recorder: Watcher, model: KerasModel) -> None:
    """Record the weights of a model after fit."""
    weights = weights_of(model)
    values = map(array_of, weights) if tf.executing_eagerly() else model.get_weights()
    recorder.record_final_variables(zip(map(plain_name, weights), values))
