"""Record the variables before the first training step, or give them the values of a recording.

In eager code a variable is taken when it is made, because models are built in their first step. One that a
tf.function makes is taken when the function has initialized it. In a graph they are taken
before the first run that trains, when the script has initialized or restored them. A value is fed to the op that
initializes the variable, so nothing is added to the graph.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation, tf_recording, tf_session
from npu_shim._tensorflow.types import (
    Fetches,
    Function,
    Graph,
    KerasModel,
    Result,
    Session,
    Structure,
    Tensor,
    Variable,
)
from npu_shim.rehearsal.recording import methods, updating
from npu_shim.rehearsal.recording.kinds import INITIAL
from npu_shim.rehearsal.recording.names import plain_name, single_fetches
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.sessions import variables_of


class InitialVariables:
    """The functions around sessions, models and variables.

    Args:
        recorder: receives the values.
        given: name and value of each variable of a recording, in its order; None to load none.
        records: False to record none, because reading them is one more run of a session.
    """

    def __init__(
        self, recorder: Recorder, given: Sequence[tuple[str, np.ndarray]] | None, records: bool = True
    ) -> None:
        self._recorder = recorder
        self._records = records
        self._left = None if given is None else list(given)
        self._taken: list[Graph] = []
        self._run: Function = tf_recording.BaseSession.run

    def watch(self) -> None:
        """Watch this process. Call it before the hooks that record sessions."""
        methods.wrap_methods(tf_recording.BaseSession, ("run",), self._initialize_before_run)
        methods.wrap_methods(tf.Variable, ("__init__",), self._record_after_init)
        methods.wrap_methods(tf_session.FUNCTION, (tf_recording.INITIALIZE,), self._initialize_function_variables)
        methods.wrap_methods(tf.keras.Model, ("train_on_batch",), self._record_before_batch)
        self._recorder.at_fit.append(self._record_before_fit)

    def _initialize_before_run(
        self, original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
    ) -> Result:
        if not self._recorder.is_inside("evaluate", "predict") and session.graph not in self._taken:
            if updating.update_numbers_of_run(session.graph, single_fetches(fetches)):
                self._initialize_session_variables(session)
        return original(session, fetches, *args, **kwargs)

    def _record_before_fit(self, model: KerasModel) -> None:
        if not tf.executing_eagerly() and model.weights:
            self._initialize_session_variables(tf.compat.v1.keras.backend.get_session())

    def _record_before_batch(self, original: Function, model: KerasModel, *args: object, **kwargs: object) -> Result:
        if model.built:
            self._record_before_fit(model)
        return original(model, *args, **kwargs)

    def _record_after_init(self, original: Function, variable: Variable, *args: object, **kwargs: object) -> None:
        with self._recorder.inside("init of an initial variable") as outermost:
            original(variable, *args, **kwargs)
        if outermost and tf_recording.is_script_variable(variable):
            is_eager = tf.executing_eagerly()
            with tf.init_scope():
                value = self._recorded_value(variable) if tf.executing_eagerly() else None
                if value is not None:
                    variable.assign(value)  # then a function that makes the variable does not initialize it
            if is_eager:
                self._record_initial_value(variable)

    def _initialize_function_variables(self, original: Function, function: Function, initializers: Structure) -> None:
        original(function, initializers)
        with tf.init_scope():  # not in a function that calls this one
            for variable in tf_recording.initialized_variables(initializers) if tf.executing_eagerly() else ():
                self._record_initial_value(variable)

    @tf_op_creation.suspend_hooks()
    def _record_initial_value(self, variable: Variable) -> None:
        if self._records:
            self._recorder.record_values(INITIAL, [(plain_name(variable), np.asarray(variable.read_value()))], 0)

    @tf_op_creation.suspend_hooks()
    def _initialize_session_variables(self, session: Session) -> None:
        if self._recorder.steps or session.graph in self._taken:
            return
        self._taken.append(session.graph)
        starts: dict[Variable, Tensor] = {}
        feeds: dict[Tensor, np.ndarray] = {}
        for variable in session.graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES):
            value = self._recorded_value(variable)
            if value is not None:
                start = variable.initializer.inputs[1]
                if start in feeds:  # two variables begin with one tensor
                    self._run(session, variable.initializer, {start: value})
                else:
                    starts[start], feeds[start] = variable.initializer, value
        if feeds:
            self._run(session, list(starts.values()), feeds)
        if self._records:
            self._recorder.record_values(INITIAL, list(variables_of(session)), 0)

    def _recorded_value(self, variable: Variable) -> np.ndarray | None:
        """Return the value of the recording for a variable, each once: of its name, or else of the last part of it."""
        name = plain_name(variable)
        same = [saved for saved in self._left or () if variable.shape.is_compatible_with(saved[1].shape)]
        matches = [saved for saved in same if saved[0] == name] or [
            saved for saved in same if _last_part_of_name(saved[0]) == _last_part_of_name(name)
        ]
        if not matches or self._left is None:
            return None
        self._left = [saved for saved in self._left if saved is not matches[0]]
        return matches[0][1].astype(variable.dtype.base_dtype.as_numpy_dtype)


def _last_part_of_name(name: str) -> str:
    return name.rpartition("/")[2]
