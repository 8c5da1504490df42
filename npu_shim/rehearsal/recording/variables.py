"""Record the variables of eager code: at the end all of them, during the run those that no optimizer updates.

Moving statistics, averages of weights, copies of models and counters change the loss late, or evaluation only.
"""

from __future__ import annotations

import collections
import weakref
from typing import Callable, Iterator, NamedTuple

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import script_frames, tf_keras, tf_op_creation, tf_recording
from npu_shim._tensorflow.types import Function, KerasModel, Result, Value, Variable
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import UNTRAINED
from npu_shim.rehearsal.recording.names import plain_name
from npu_shim.rehearsal.recording.recorder import Recorder

_NAME = "npu_shim_name"  # attribute of a variable, so that it ends with it
_MOST_VARIABLES = 1000
_MOST_ELEMENTS = 1 << 20  # of the variables that are recorded at a step; the end has all


class _Kept(NamedTuple):
    """Variables between two training steps.

    Attributes:
        step: the last one.
        updates: the number of updates of all optimizers.
        values: name, variable and array of each.
    """

    step: int
    updates: int
    values: list[tuple[str, Variable, np.ndarray]]


class EagerVariables:
    """The variables of the models of eager code, and those that the script makes itself.

    Args:
        recorder: receives their values.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._models: list[Callable[[], Result]] = []  # weak references
        self._called: dict[int, KerasModel] = {}
        self._own: list[Variable] = []
        self._used: collections.Counter[str] = collections.Counter()  # names
        self._kept: _Kept | None = None
        recorder.at_end.append(self._record_final_variables)
        methods.wrap_methods(tf.Variable, ("__init__",), self._keep_own_variable)
        methods.wrap_methods(tf.keras.Model, ("__init__",), self._keep_new_model)

    def keep_model(self, model: KerasModel) -> None:
        """Keep a model that the script calls: its last variables are recorded, also if the script drops it."""
        self._called.setdefault(id(model), model)

    def keep_values(self, of_all: bool = False) -> None:
        """Keep the values after a training step. Call it before whatever may begin another, or evaluates.

        A step in eager code and a tf.function of it have the same values there only: between two updates of a step, or
        after the first pass of a step that is not wanted, moving statistics are others.

        Args:
            of_all: True to keep those of all variables, also if nothing has been updated since they were kept.
        """
        recorder, kept = self._recorder, self._kept
        step, updates = recorder.steps, recorder.updates
        is_known = kept is not None and kept.updates == updates
        if not step or not of_all and (is_known or not recorder.wants_untrained(step)):
            return
        variables = list(self._variables_with_values())
        if not of_all:
            variables = smallest_variables([named for named in variables if not recorder.is_trained(named[1])])
        self._kept = _Kept(step, updates, [(name, variable, array_of(variable)) for name, variable in variables])

    def record_untrained(self) -> None:
        """Record what was kept of the step before this one, of the variables that no optimizer has updated so far."""
        recorder, kept = self._recorder, self._kept
        if kept is not None and kept.step < recorder.steps:
            self._kept = None
            untrained = [(name, array) for name, variable, array in kept.values if not recorder.is_trained(variable)]
            recorder.record_values(UNTRAINED, untrained, kept.step)

    def _keep_own_variable(self, original: Function, variable: Variable, *args: object, **kwargs: object) -> None:
        with self._recorder.inside("init of a variable") as outermost:
            original(variable, *args, **kwargs)
        if (
            outermost
            and tf_recording.is_resource(variable)
            and len(self._own) < _MOST_VARIABLES
            and script_frames.is_called_directly_by_script()
        ):
            self._own.append(variable)

    def _keep_new_model(self, original: Function, model: KerasModel, *args: object, **kwargs: object) -> None:
        original(model, *args, **kwargs)
        if tf.executing_eagerly() and all(known() is not model for known in self._models):
            self._models.append(weakref.ref(model))

    def _variables_with_values(self) -> Iterator[tuple[str, Variable]]:
        """Yield each variable that has a value, with a name of its own."""
        models = [model for model in (reference() for reference in self._models) if model is not None]
        seen: set[int] = set()
        called = self._called.values()
        for variable in [*(weight for model in (*models, *called) for weight in weights_of(model)), *self._own]:
            if id(variable) not in seen and tf_recording.has_eager_value(variable):
                seen.add(id(variable))
                yield self._unique_name(variable), variable

    def _unique_name(self, variable: Variable) -> str:
        name: str | None = getattr(variable, _NAME, None)
        if name is None:
            name = plain_name(variable)
            self._used[name] += 1
            name = f"{name} ({self._used[name]})" if self._used[name] > 1 else name
            setattr(variable, _NAME, name)
        return name

    def _record_final_variables(self) -> None:
        kept = {}
        if self._recorder.ended_within_step and self._kept is not None:
            kept = {name: array for name, _, array in self._kept.values}
        rows = [
            (name, kept[name] if name in kept else array_of(variable))
            for name, variable in (self._variables_with_values() if self._recorder.steps else ())
        ]
        if rows:
            self._recorder.record_final_variables(rows)


def weights_of(model: KerasModel, kind: str = "weights") -> list[Variable]:
    """Return the variables of a model, or those of its parts that have some already.

    Args:
        model: of Keras.
        kind: the attribute with the variables.
    """
    try:
        return list(getattr(model, kind))
    except ValueError:  # of Keras 2, if a part is a Sequential model that nothing has called
        _, *parts = tf_keras.layer_and_sublayers(model)
        weights = {id(weight): weight for part in parts for weight in weights_of(part, kind)}
        return list(weights.values())


def smallest_variables(variables: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """Return the smallest of some named variables, a million elements of them."""
    sizes = [int(np.prod(variable.shape)) if variable.shape.rank is not None else 0 for _, variable in variables]
    left, kept = _MOST_ELEMENTS, set()
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        left -= sizes[place]
        if left < 0:
            break
        kept.add(place)
    return [named for place, named in enumerate(variables) if place in kept]


@tf_op_creation.suspend_hooks()
def array_of(variable: Variable) -> np.ndarray:
    """Return the elements of a variable of eager code."""
    return np.asarray(variable.numpy())
