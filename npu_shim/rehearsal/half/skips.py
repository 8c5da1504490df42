"""Skip in a float32 run the steps that the loss scale has skipped in half precision.

A skipped step applies no update, so from there on the two runs would train with different batches. Here the gradients
of the same steps get an infinity before an optimizer with a loss scale looks at them. It skips them by its own rules,
and its loss scale has the same history.
"""

from __future__ import annotations

import weakref
from typing import Callable, Collection

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation
from npu_shim._tensorflow.tf_numpy_function import add_array_function_op
from npu_shim._tensorflow.types import Gradient, Optimizer, Result, Tensor, Value
from npu_shim.rehearsal.numerics.update_values import scale_of
from npu_shim.rehearsal.recording.calls import Calls
from npu_shim.rehearsal.recording.update_hooks import Apply, Pairs, UpdateHooks


class Skips(UpdateHooks):
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
        self._calls = Calls()

    def _apply_and_watch(self, optimizer: Optimizer, pairs: Pairs, apply: Apply, is_reduced: bool = False) -> Result:
        """Apply gradients, of steps to skip with an infinity."""
        with self._calls.inside("update") as outermost:
            return apply(self._insert_infinity(optimizer, pairs) if outermost else pairs)

    def _insert_infinity(self, optimizer: Optimizer, pairs: Pairs) -> Pairs:
        number = self._numbers.setdefault(optimizer, len(self._numbers))
        scale = scale_of(optimizer)
        place = next((n for n, (gradient, _) in enumerate(pairs) if gradient is not None), None)
        if scale is None or not scale.skips or place is None:
            return pairs
        gradient, variable = pairs[place]
        with tf_op_creation.suspend_hooks():
            changed = _scaled_gradient(gradient, self._skip_factor(number))
        return [*pairs[:place], (changed, variable), *pairs[place + 1 :]]

    def _skip_factor(self, number: int) -> Tensor:
        """Return a scalar tensor: infinity in the steps to skip, 1 in others."""

        def factor(unused: Value = None) -> list[np.ndarray]:
            step = self._counts[number] = self._counts.get(number, 0) + 1
            if (number, step) not in self._steps:
                return [np.array(1, np.float32)]
            self._skipped(number, step)
            return [np.array(np.inf, np.float32)]

        if tf.executing_eagerly():
            return tf.constant(factor()[0])
        outputs: Result = add_array_function_op(factor, [tf.constant(0)], [tf.float32])
        outputs[0].set_shape([])
        return outputs[0]


def _scaled_gradient(gradient: Gradient, factor: Tensor) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_scaled_gradient(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)
