"""Record inputs, loss and gradients of tf.GradientTape, before an optimizer or the script changes them."""

from __future__ import annotations

import weakref
from typing import Callable

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import script_frames, tf_graph, tf_op_creation, tf_recording
from npu_shim._tensorflow.types import Function, GradientTape, Graph, KerasModel, Result, Structure, Tensor
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.evaluation import arrays_of, record_call
from npu_shim.rehearsal.recording.graph_inputs import named_inputs_and_draws
from npu_shim.rehearsal.recording.host_values import HostUpdates
from npu_shim.rehearsal.recording.kinds import INPUT, LOSS, TAPE, TAPES, VARIABLE
from npu_shim.rehearsal.recording.losses import FIRST
from npu_shim.rehearsal.recording.names import plain_name
from npu_shim.rehearsal.recording.optimizers import dense_gradient
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.saved_graphs import add_note
from npu_shim.rehearsal.recording.variables import EagerVariables, array_of, weights_of

_CALL = "call of a model"


def mark_tapes(recorder: Recorder) -> None:
    """Let the recorder know when a tape records. Random ops are seeded by it, also on a device."""

    def enter(original: Function, tape: GradientTape) -> Result:
        recorder.enter(TAPES)
        return original(tape)

    def leave(original: Function, tape: GradientTape, *error: object) -> Result:
        recorder.leave(TAPES)
        return original(tape, *error)

    methods.wrap_methods(tf.GradientTape, ("__enter__",), enter)
    methods.wrap_methods(tf.GradientTape, ("__exit__",), leave)


def watch_tapes(recorder: Recorder, eager_variables: EagerVariables) -> None:
    """Record each call of ``GradientTape.gradient``, in eager code and in each run of a tf.function.

    In a tf.function the inputs are its arguments and the batches it reads. In eager code they are what the outermost
    Keras model is called with while a tape records.
    """

    def gradient(
        original: Function, tape: GradientTape, target: Structure, sources: Structure, *args: object, **kwargs: object
    ) -> Result:
        gradients = original(tape, target, sources, *args, **kwargs)
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        if graph is not None and not getattr(graph, "building_function", False):
            return gradients
        return record_tape(graph, target, sources, gradients)

    @tf_op_creation.suspend_hooks()
    def record_tape(graph: Graph | None, target: Structure, sources: Structure, gradients: Result) -> Result:
        variables = {plain_name(source) for source in tf.nest.flatten(sources) if hasattr(source, "assign")}
        loss = recorder.losses.name_of_loss(None if recorder.is_inside("fit") else _running_script_line(), variables)
        mark = f" of {loss}" if loss != FIRST else ""
        rows = [(LOSS, f"target {n}{mark}" if n else loss, value) for n, value in enumerate(_numeric_tensors(target))]
        for number, (source, value) in enumerate(zip(tf.nest.flatten(sources), tf.nest.flatten(gradients))):
            is_variable = hasattr(source, "assign")
            name = plain_name(source) if is_variable else f"source {number}"
            value = (
                dense_gradient(value, source) if is_variable and value is not None else getattr(value, "values", value)
            )
            rows += [(TAPE, name + mark, tensor) for tensor in _numeric_tensors(value)]
        if graph is not None and recorder.records_inputs(graph):
            rows = named_inputs_and_draws([value for _, _, value in rows], graph, recorder) + rows
        names = [(kind, name) for kind, name, _ in rows]
        for kind, name, value in rows if graph is not None else ():
            recorder.record_line(kind, name, tf_recording.creation_line_of_op(value.op))

        count = _updates_by_script(recorder, sources)

        def record_arrays(*arrays: np.ndarray) -> np.ndarray:
            if count is not None:
                count()
            recorder.record_tensors([name + (np.asarray(array),) for name, array in zip(names, arrays)], variables)
            return np.zeros((), np.int64)

        if graph is None:
            record_arrays(*[value for _, _, value in rows])
            return gradients
        return _computed_after(add_note(record_arrays, [value for _, _, value in rows], tf.int64), gradients)

    def keep_values(of_all: bool = False) -> None:
        if tf.executing_eagerly() and not recorder.is_inside(TAPES):
            eager_variables.keep_values(of_all)

    def call(original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
        with recorder.inside(_CALL) as outermost:
            if outermost:
                keep_values()
            result = original(model, *args, **kwargs)  # may build the model; before that it has no variables
            if outermost:
                eager_variables.keep_model(model)
                if not recorder.is_inside(TAPES):
                    record_call(recorder, model.name, (args, kwargs), result)
        if outermost and tf.executing_eagerly() and recorder.is_inside(TAPES):
            rows = [(INPUT, f"{model.name} {n}", value) for n, value in enumerate(arrays_of((args, kwargs)))]
            recorder.record_tensors(rows, {plain_name(weight) for weight in weights_of(model, "trainable_variables")})
        return result

    def enter(original: Function, tape: GradientTape) -> Result:
        keep_values(recorder.is_done())  # in eager code a step that is not wanted ends in the tape
        return original(tape)

    methods.wrap_methods(tf.GradientTape, ("__enter__",), enter)
    methods.wrap_methods(tf.GradientTape, ("gradient",), gradient)
    methods.wrap_methods(tf.keras.Model, ("__call__",), call)


def count_updates_by_script(recorder: Recorder, optimizers: HostUpdates) -> None:
    """Count the steps of loops whose script updates the variables itself. Nothing else is recorded.

    A graph gets no op for it, because the script may save it: the calls of a function with gradients are counted.

    Args:
        recorder: counts.
        optimizers: count their updates themselves.
    """

    def gradient(
        original: Function, tape: GradientTape, target: Structure, sources: Structure, *args: object, **kwargs: object
    ) -> Result:
        gradients = original(tape, target, sources, *args, **kwargs)
        if optimizers.has_updated_variables() or recorder.is_inside("fit", "train_on_batch"):
            return gradients
        record = _updates_by_script(recorder, sources)
        if record is not None and tf.executing_eagerly():
            record()
        elif record is not None:
            names = frozenset(plain_name(source) for source in tf.nest.flatten(sources) if hasattr(source, "assign"))
            optimizers.functions.remember_update(names, lambda: optimizers.has_updated_variables() or record())
        return gradients

    methods.wrap_methods(tf.GradientTape, ("gradient",), gradient)


def _updates_by_script(recorder: Recorder, sources: Structure) -> Callable[[], None] | None:
    """Return a function that counts an update by the script; None without variables, or in a graph of a session."""
    own = [weakref.ref(source) for source in tf.nest.flatten(sources) if hasattr(source, "assign")]
    if not own or not tf_graph.is_eager_outermost():
        return None

    def count() -> None:
        variables = [reference() for reference in own]
        if not any(variable is None for variable in variables):
            recorder.record_update_by_script(
                lambda: [(VARIABLE, plain_name(variable), array_of(variable)) for variable in variables]
            )

    return count


def _computed_after(op: Tensor, gradients: Structure) -> Structure:
    """Return gradients that are computed after an op: before the update, which would begin the next step."""
    with tf.control_dependencies([op]):
        return tf.nest.map_structure(
            lambda value: None if value is None else tf.identity(value), gradients, expand_composites=True
        )


def _running_script_line() -> tuple[str, int] | None:
    """Return file and line of the script that is running: one tape may differentiate several losses."""
    frame = next(script_frames.running_frames(), None)
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _numeric_tensors(structure: Structure) -> list[Tensor]:
    """Return the tensors of numbers of a structure."""
    return [
        tensor
        for tensor in tf.nest.flatten(structure)
        if isinstance(tensor, tf.Tensor) and (tensor.dtype.is_floating or tensor.dtype.is_complex)
    ]
