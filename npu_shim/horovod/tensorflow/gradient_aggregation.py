"""Gradients that are summed over several backward passes before they are reduced."""

from __future__ import annotations

from typing import Callable, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Gradient, Operation, Result, Tensor, TensorShape, Variable
from npu_shim.horovod.tensorflow.gradient_reduction import GradientReducer


class LocalGradientAggregation:
    """Sums gradients on each rank; every ``passes`` passes the sums are reduced and applied.

    Args:
        passes: backward passes for each reduction.
        reducer: reduces the sums.
        sparse_as_dense: True if tf.IndexedSlices become dense tensors.
        average: True if the reduced sums are divided by passes.
        new_variable: makes a variable of zeros from its shape, type and name.
    Raises:
        ValueError: passes is not positive.

    Attributes:
        counter: the passes since the last reduction, an int32 variable; None before the first gradients.
    """

    def __init__(
        self,
        passes: int,
        reducer: GradientReducer,
        sparse_as_dense: bool,
        average: bool,
        new_variable: Callable[[TensorShape, DType, str], Variable],
    ) -> None:
        if passes <= 0:
            raise ValueError(f"backward_passes_per_step={passes!r} is not allowed. Pass a positive number.")
        self._passes, self._reducer, self._average = passes, reducer, average
        self._sparse_as_dense, self._new_variable = sparse_as_dense, new_variable
        self.counter: Variable | None = None
        self._sums: dict[int, Variable] = {}

    def compute_gradients(self, gradients: Sequence[Gradient], variables: Sequence[Variable]) -> list[Gradient]:
        """Return the reduced sums in the pass that ends a step, and this rank's sums in the others."""
        dense = [self._to_dense(gradient) for gradient in gradients]
        present = [index for index, gradient in enumerate(dense) if gradient is not None]
        self._create_missing_variables(present, dense)
        assert self.counter is not None
        count = self.counter + 1
        first, last = tf.equal(count, 1), tf.equal(count, self._passes)
        sums = [self._add_gradient(self._sums[index], dense[index], first) for index in present]
        with tf.control_dependencies(sums):
            counted = self.counter.assign(tf.cond(last, lambda: tf.zeros_like(count), lambda: count))

        def reduced() -> list[Tensor]:
            whole = self._reducer.reduce(sums, [variables[index] for index in present])
            return [total / tf.cast(self._passes if self._average else 1, total.dtype) for total in whole]

        results: Result = tf.cond(last, reduced, lambda: [tf.identity(tensor) for tensor in sums])
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        with tf.control_dependencies([] if tf.executing_eagerly() else [counted]):
            results = [tf.identity(tensor) for tensor in results]
        by_index = dict(zip(present, results))
        return [by_index.get(index) for index in range(len(dense))]

    def apply_gradients(
        self,
        apply: Callable[[], Operation | Tensor | None],
        count: Callable[[], Operation | Tensor | None],
        gradients: Sequence[Gradient],
    ) -> Operation | Tensor:
        """Apply gradients in the pass that ends a step, and call ``count`` in the others.

        Args:
            apply: applies them.
            count: counts a step in which nothing is applied.
            gradients: the results of compute_gradients.
        """

        def true_after(function: Callable[[], Operation | Tensor | None]) -> Callable[[], Tensor]:
            def run() -> Tensor:
                op = function()
                with tf.control_dependencies([] if op is None or tf.executing_eagerly() else [op]):
                    return tf.constant(True)

            return run

        assert self.counter is not None
        with tf.control_dependencies([] if tf.executing_eagerly() else [g for g in gradients if g is not None]):
            is_last = tf.equal(self.counter.read_value(), 0)
        result = tf.cond(is_last, true_after(apply), true_after(count))
        return result if tf.executing_eagerly() else result.op

    def _to_dense(self, gradient: Gradient) -> Tensor | None:
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if not self._sparse_as_dense:
            raise ValueError(
                "backward_passes_per_step > 1 does not sum tf.IndexedSlices. Pass sparse_as_dense=True to "
                "hvd.DistributedOptimizer."
            )
        return tf.convert_to_tensor(gradient)

    def _create_missing_variables(self, present: list[int], gradients: Sequence[Tensor | None]) -> None:
        if self.counter is None:
            self.counter = self._new_variable((), tf.int32, "aggregation_counter")
        for index in present:
            if index not in self._sums:
                gradient = gradients[index]
                assert gradient is not None
                self._sums[index] = self._new_variable(gradient.shape, gradient.dtype, f"aggregation_{index}")

    @staticmethod
    def _add_gradient(total: Variable, gradient: Tensor, first: Tensor) -> Tensor:
        """Return the sum with this pass; the first pass replaces what was in it, also infinities."""
        value = tf.cond(first, lambda: tf.identity(gradient), lambda: total + gradient)
        assigned = total.assign(value)
        with tf.control_dependencies([] if tf.executing_eagerly() else [assigned]):
            return tf.identity(value)
