"""Skip in a float32 run the steps that the loss scale has skipped in half precision.

A skipped step applies no update, so from there on the two runs would train with different batches. Here the gradients
of the same steps get an infinity before an optimizer with a loss scale looks at them. It skips them by its own rules,
and its loss scale has the same history.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Callable, Collection

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_keras, tf_op_creation
from npu_shim._tensorflow.tf_numpy_function import array_function
from npu_shim.rehearsal.numerics.update_values import scale_of
from npu_shim.rehearsal.recording import methods

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, Gradient, Optimizer, Result, Structure, Tensor, Value
    from npu_shim.rehearsal.recording.update_hooks import Pairs


class Skips:
    """Hooks around the methods of all optimizers.

    Args:
        steps: number of the optimizer, from 0, and its step, from 1, of each step to skip.
        skipped: called with both when a step gets its infinity.
    """

    def __init__(self, steps: Collection[tuple[int, int]], skipped: Callable[[int, int], None]) -> None:
        self._steps = frozenset(steps)
        self._skipped = skipped
        self._numbers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._counts: dict[int, int] = {}
        self._inside = threading.local()

    def install(self) -> None:
        """Put the hooks around the methods."""
        for owner in {tf.compat.v1.train.Optimizer, *tf_keras.optimizer_classes()}:
            methods.wrap(owner, ("apply_gradients",), self.apply_gradients)
            methods.wrap(owner, ("apply",), self.apply)

    def apply_gradients(
        self, original: Function, optimizer: Optimizer, grads_and_vars: Pairs, *args: object, **kwargs: object
    ) -> Result:
        """Apply gradients, of steps to skip with an infinity."""
        pairs = list(grads_and_vars)
        with _Outermost(self._inside) as outermost:
            if outermost:
                changed = self._changed(optimizer, [gradient for gradient, _ in pairs])
                pairs = [(gradient, variable) for gradient, (_, variable) in zip(changed, pairs)]
            return original(optimizer, pairs, *args, **kwargs)

    def apply(
        self, original: Function, optimizer: Optimizer, grads: Structure, *args: object, **kwargs: object
    ) -> Result:
        """Apply gradients as apply() of Keras 3 does, of steps to skip with an infinity."""
        given = list(grads)
        with _Outermost(self._inside) as outermost:
            return original(optimizer, self._changed(optimizer, given) if outermost else given, *args, **kwargs)

    def _changed(self, optimizer: Optimizer, gradients: list[Gradient]) -> list[Gradient]:
        number = self._numbers.setdefault(optimizer, len(self._numbers))
        scale = scale_of(optimizer)
        place = next((n for n, gradient in enumerate(gradients) if gradient is not None), None)
        if scale is None or not scale.skips or place is None:
            return gradients
        with tf_op_creation.suspended():
            gradients[place] = _times(gradients[place], self._factor(number))
        return gradients

    def _factor(self, number: int) -> Tensor:
        """Return a scalar tensor: infinity in the steps to skip, 1 in others."""

        def factor(unused: Value = None) -> list[np.ndarray]:
            step = self._counts[number] = self._counts.get(number, 0) + 1
            if (number, step) not in self._steps:
                return [np.array(1, np.float32)]
            self._skipped(number, step)
            return [np.array(np.inf, np.float32)]

        if tf.executing_eagerly():
            return tf.constant(factor()[0])
        outputs: Result = array_function(factor, [tf.constant(0)], [tf.float32])
        outputs[0].set_shape([])
        return outputs[0]


class _Outermost:
    """A context manager that returns True for the outermost one of a thread."""

    def __init__(self, inside: threading.local) -> None:
        self._inside = inside

    def __enter__(self) -> bool:
        self._before = getattr(self._inside, "depth", 0)
        self._inside.depth = self._before + 1
        return not self._before

    def __exit__(self, *error: object) -> None:
        self._inside.depth = self._before


def _times(gradient: Gradient, factor: Tensor) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_times(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)
