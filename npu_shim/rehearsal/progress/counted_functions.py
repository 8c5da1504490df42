"""Count the steps of tf.functions: the calls of those in which an optimizer or a tape was traced."""

from __future__ import annotations

import weakref

import tensorflow as tf

from npu_shim._tensorflow.types import Function, Optimizer, Result, Structure, Tensor, TracedFunction
from npu_shim.rehearsal.progress.progress import Progress, scalar_or_none
from npu_shim.rehearsal.recording.kinds import LOSS, RATE
from npu_shim.rehearsal.recording.traced_updates import TracedUpdates

_TAPE = -2  # the source of steps without an optimizer


class Steps:
    """The steps of an optimizer in a function."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._last: tuple[int, int] | None = None  # the variable, and the number of calls by the count
        self.per_call = 1

    def read(self, counted: int) -> int | None:
        """Return the steps that the optimizer has counted; None if it does not count."""
        iterations = getattr(self._optimizer(), "iterations", None)
        number = None if iterations is None else scalar_or_none(iterations)
        if number is None:
            return None
        reached = int(number)
        if self._last is not None and counted > self._last[1]:
            calls = (counted - self._last[1]) / self.per_call
            self.per_call = max(1, round((reached - self._last[0]) / calls))
        self._last = reached, reached
        return reached


class Functions(TracedUpdates[int, Steps]):
    """The tf.functions that train.

    A function may make several steps in a loop. Keras optimizers count their steps in a variable, which is read now and
    then; with other optimizers, and without one, a call is one step.

    Args:
        progress: counts.
    """

    def __init__(self, progress: Progress) -> None:
        super().__init__(progress)
        self._progress = progress
        self._losses: weakref.WeakKeyDictionary[TracedFunction, list[Tensor]] = weakref.WeakKeyDictionary()

    def remember_loss(self, loss: Tensor) -> None:
        """Remember a loss of the function that is being traced."""
        function = self.function_being_traced()
        if function is not None:
            self._losses.setdefault(function, []).append(loss)
            self._training.setdefault(function, {})

    def count_call(self, function: Function, result: Result) -> None:
        """Count the steps of a call, and show their loss and learning rate now and then."""
        progress, training = self._progress, self._training[function]
        for number, steps in training.items():
            progress.count_steps(number, steps.per_call)
        if not training:
            progress.count_steps(_TAPE)
        if not progress.is_due():
            return
        for number, steps in training.items():
            reached = steps.read(progress.steps_of_source(number))
            if reached is not None:
                progress.set_step_count(number, reached)
        loss = self._returned_loss(function, result)
        if loss is not None:
            progress.keep_value(LOSS, "loss", loss)
        rate = progress.learning_rate()
        if rate is not None:
            progress.keep_value(RATE, "learning_rate", rate)

    def _returned_loss(self, function: Function, result: Result) -> float | None:
        """Return the value of a differentiated loss among the results of a function; None if it returns none."""
        values = tf.nest.flatten(result)
        for loss in reversed(self._losses.get(function, [])):
            outputs = tf.nest.flatten(getattr(loss.graph, "structured_outputs", None))
            if len(outputs) != len(values):
                continue
            for output, value in zip(outputs, values):
                if _copied_tensor(output) is loss:
                    return scalar_or_none(value)
        return None


def _copied_tensor(output: Structure) -> Tensor:
    """Return the tensor of which an output of a function is a copy."""
    while isinstance(output, tf.Tensor) and output.op.type == "Identity":
        output = output.op.inputs[0]
    return output
