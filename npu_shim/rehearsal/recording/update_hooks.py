"""The functions around the methods with which optimizers apply gradients."""

from __future__ import annotations

from typing import Callable, List, Tuple

import tensorflow as tf

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.types import Function, Gradient, Optimizer, Result, Structure, Variable
from npu_shim.rehearsal.recording import methods

Pairs = List[Tuple[Gradient, Variable]]
Apply = Callable[[Pairs], Result]


def optimizer_classes() -> set[type]:
    """Return the base classes of optimizers of TensorFlow and Keras."""
    return {tf.compat.v1.train.Optimizer, *tf_keras.optimizer_classes()}


class UpdateHooks:
    """Functions around the methods of optimizers that apply gradients. Subclasses say what is done around an update."""

    def install(self) -> None:
        """Put the functions around the methods of all optimizers, those of classes that are defined later included."""
        for owner in optimizer_classes():
            methods.wrap_methods(owner, ("apply_gradients",), self.apply_gradients)
            methods.wrap_methods(owner, ("apply",), self.apply)

    def apply_gradients(
        self, original: Function, optimizer: Optimizer, grads_and_vars: Pairs, *args: object, **kwargs: object
    ) -> Result:
        """Do what is done around an update of apply_gradients()."""
        is_reduced = kwargs.get("experimental_aggregate_gradients") is False or kwargs.get("skip_gradients_aggregation")

        def apply(pairs: Pairs) -> Result:
            return original(optimizer, pairs, *args, **kwargs)

        return self._apply_and_watch(optimizer, list(grads_and_vars), apply, bool(is_reduced))

    def apply(
        self,
        original: Function,
        optimizer: Optimizer,
        grads: Structure,
        trainable_variables: Structure = None,
        **kwargs: object,
    ) -> Result:
        """Do what is done around an update of apply(), which Keras 3 has."""
        used = tf_keras.built_variables(optimizer) if trainable_variables is None else trainable_variables
        gradients = list(grads)
        paired = list(zip(gradients, used))
        others = gradients[len(paired) :]  # the optimizer judges a wrong number of gradients

        def apply(pairs: Pairs) -> Result:
            return original(optimizer, [gradient for gradient, _ in pairs] + others, trainable_variables, **kwargs)

        return self._apply_and_watch(optimizer, paired, apply)

    def _apply_and_watch(self, optimizer: Optimizer, pairs: Pairs, apply: Apply, is_reduced: bool = False) -> Result:
        """Call apply() with the pairs. `is_reduced` is False if it reduces the gradients over the replicas first."""
        raise NotImplementedError
