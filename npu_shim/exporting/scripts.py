"""A model from a script, which runs with its own arguments until it predicts or trains."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
from typing import Callable, Mapping, Sequence

import numpy as np

from npu_shim._tensorflow import patches, tf_api, tf_keras, tf_session
from npu_shim._tensorflow.types import (
    FeedDict,
    Fetches,
    Function,
    Graph,
    KerasModel,
    Operation,
    Result,
    Session,
    Structure,
    Tensor,
    Value,
)
from npu_shim.exporting import sources
from npu_shim.exporting.graph_defs import VARIABLES, ExportError, key_of_tensor, variable_names
from npu_shim.exporting.ports import FED, is_number_tensor
from npu_shim.exporting.sources import Source
from npu_shim.rehearsal.assess import until_stop
from npu_shim.rehearsal.assess.capture import Capture, Stop, python_function_name
from npu_shim.rehearsal.assess.given_shapes import Feeds
from npu_shim.rehearsal.assess.lines import creating_lines
from npu_shim.rehearsal.assess.training_ops import (
    all_ops_with_functions,
    has_gradient_updates,
    needed_ops_with_functions,
)

tf = tf_api.tf


def open_script(path: str, arguments: list[str], checkpoint: str | None, alias: bool) -> Source:
    """Return the model of a script.

    Args:
        path, arguments: of the script.
        checkpoint: with the values of the variables, or None for those that the script has.
        alias: True to serve the vendor's packages and Horovod.
    """
    capture = _StopAtPrediction(path, checkpoint)
    with until_stop.run_until_stop(capture, path, arguments, alias):
        make = capture.make
    if make is not None:  # after the script, so that what makes the source is not captured
        return make()
    if capture.eager_line:
        trains = f"{path} trains in eager mode, at {capture.eager_line}, and calls no Keras model before"
        raise ExportError(f"{trains}. Export the SavedModel that it writes.")
    end = capture.failure or "it ended"
    raise ExportError(f"{path} did not predict: {end}. Give the arguments with which it predicts after --.")


class _StopAtPrediction(Capture):
    """Stops at the first session run, model or tf.function that computes something from inputs and variables."""

    def __init__(self, path: str, checkpoint: str | None) -> None:
        super().__init__(os.path.dirname(os.path.abspath(path)))
        self.make: Callable[[], Source] | None = None
        self._path, self._checkpoint, self._depth = path, checkpoint, 0

    def install(self) -> None:
        super().install()
        if not tf.__version__.startswith("1."):
            owner = next(kind for kind in tf.keras.Model.__mro__ if "__call__" in vars(kind))
            patches.replace_attribute(owner, "__call__", self._wrap_model_call)

    def _stop(self, make: Function, *arguments: object) -> None:
        self.make = functools.partial(make, self._path, *arguments)
        raise Stop

    # --- sessions

    def _should_skip_run(self, graph: Graph, ops: list[Operation], feeds: Feeds) -> bool:
        tensors = [tensor for op in ops for tensor in op.outputs]
        return has_gradient_updates(needed_ops_with_functions(ops)) or any(
            tensor.dtype.is_floating and _is_prediction(tensor, feeds) for tensor in tensors
        )

    def _record_run(
        self,
        session: Session,
        ops: list[Operation],
        feeds: Feeds,
        feed_dict: FeedDict | None,
        fetches: Fetches,
        run: Function,
        connected: Mapping[str, str] = {},
    ) -> None:
        graph = session.graph
        definition = graph.as_graph_def()
        if self._checkpoint:
            read = sources.checkpoint_reader(definition, sources.checkpoint_prefix(self._checkpoint))
        else:
            read = _read_variables(session, variable_names(definition), run)
        signatures, constants = {}, {}
        if not has_gradient_updates(needed_ops_with_functions(ops)):  # else they are those of training
            fetched = tf_session.fetched_elements(session, fetches)
            results = [result for result in fetched if isinstance(result, tf.Tensor) and _is_prediction(result, feeds)]
            given = {tensor: value for tensor, value in feeds if np.ndim(value)}
            constants = {tensor.op.name: value for tensor, value in feeds if not np.ndim(value)}
            inputs, outputs = (
                {key_of_tensor(tensor.name): tensor.name for tensor in side} for side in (given, results)
            )
            signatures[sources.DEFAULT] = inputs, outputs
        kind, lines = f"graph at {self._running_line()}", functools.partial(_lines_of_node, graph, self._folder)
        self._stop(sources.Source, kind, definition, read, signatures, constants, lines)

    def _wrap_train_to_stop(self, original: Function) -> Function:
        return original

    # --- TensorFlow 2

    def _wrap_model_call(self, original: Function) -> Function:
        def call(model: KerasModel, inputs: Structure = None, *args: object, **kwargs: object) -> Result:
            flat = tf.nest.flatten(inputs)
            is_symbolic = any(tf_keras.is_keras_tensor(tensor) for tensor in flat)
            if self._depth or is_symbolic or not isinstance(model, tf.keras.Model) or not flat:
                return original(model, inputs, *args, **kwargs)
            self._depth += 1
            try:
                result = original(model, inputs, *args, **kwargs)
            finally:
                self._depth -= 1
            if model.weights:  # else it only changes inputs
                given = getattr(model, "inputs", None) or tf.nest.map_structure(_with_any_batch, inputs)
                kind = f"{model.name} at {self._running_line()}"
                self._stop(_keras_source, kind, _models_by_signature(model, given), self._checkpoint)
            return result

        return call

    def _should_skip_call(self, concrete: Value) -> bool:
        if has_gradient_updates(all_ops_with_functions(concrete.graph)):
            self.eager_line = self._running_line()
            raise Stop
        given = len(concrete.inputs) - len(concrete.captured_inputs)
        return bool(given and concrete.graph.variables)

    def _record_call(
        self, function: Value, concrete: Value, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> None:
        kind, functions = f"{python_function_name(function)} at {self._running_line()}", {sources.DEFAULT: concrete}
        self._stop(sources.function_source, kind, functions, concrete.graph.variables)


def _is_prediction(tensor: Tensor, feeds: Feeds) -> bool:
    """Return True for a result of variables and inputs."""
    ops, fed = needed_ops_with_functions([tensor.op]), {fed_tensor.op for fed_tensor, _ in feeds}
    of_both = any(op.type in VARIABLES for op in ops) and any(op.type in FED or op in fed for op in ops)
    return of_both and is_number_tensor(tensor)


def _read_variables(session: Session, names: list[str], run: Function) -> sources.Read:
    """Return a reader of the values that variables have now, since the session ends with the script."""
    values = {}
    for name in names:
        with contextlib.suppress(tf.errors.FailedPreconditionError):
            values[name] = run(session, sources.value_tensor_of_variable(session.graph, name))
    return lambda wanted: values


def _lines_of_node(graph: Graph, folder: str, name: str) -> list[str]:
    """Return the lines of a node, or of that in whose place it is."""
    ops = {op.name: op for op in graph.get_operations()}
    callers = [ops[prefix] for prefix in itertools.accumulate(name.split("/"), "{}/{}".format) if prefix in ops]
    return creating_lines(callers[-1], folder) if callers else []


def _models_by_signature(called: KerasModel, inputs: Structure) -> dict[str, tuple[KerasModel, Structure]]:
    """Return the models of the script, by the names of their signatures.

    The called one is the default if it has all others inside. A GAN has several, of which a person chooses.
    """
    models = [model for model in gc.get_objects() if issubclass(type(model), tf.keras.Model)]
    alive = [model for model in models if model.built and model.weights]
    # With a model of their own in Keras 3.
    chains = [model for model in alive if isinstance(model, tf.keras.Sequential)]
    others = [
        model
        for model in alive
        if model is not called
        and getattr(model, "inputs", None)
        and (
            model in chains or not any(_has_submodel(model, chain) and _has_submodel(chain, model) for chain in chains)
        )
    ]
    name = sources.DEFAULT if all(_has_submodel(called, model) for model in others) else called.name
    # Parts of others last.
    others.sort(key=lambda model: (sum(_has_submodel(other, model) for other in alive), model.name))
    return {name: (called, inputs), **{model.name: (model, model.inputs) for model in others if model.name != name}}


def _has_submodel(model: KerasModel, part: KerasModel) -> bool:
    return {id(weight) for weight in part.weights} <= {id(weight) for weight in model.weights}


def _keras_source(
    path: str, kind: str, models: dict[str, tuple[KerasModel, Structure]], checkpoint: str | None
) -> Source:
    if checkpoint:
        models = {name: called for name, called in models.items() if sources.restore_weights(called[0], checkpoint)}
        if not models:
            raise ExportError(f"{checkpoint} has no weights for the {kind}. Give the checkpoint of this model.")
    return sources.keras_source(path, kind, models)


def _with_any_batch(value: Value) -> Value:
    return tf.TensorSpec([None, *value.shape[1:]], value.dtype)
