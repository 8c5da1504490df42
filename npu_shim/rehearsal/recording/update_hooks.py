"""The functions around the methods with which optimizers apply gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, Tuple

from npu_shim._tensorflow import tf_keras

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, Gradient, Optimizer, Result, Structure, Variable

    Pairs = List[Tuple[Gradient, Variable]]


class UpdateHooks:
    """Functions around the methods of optimizers that apply gradients. Subclasses say what is done around an update."""

    def apply_gradients(
        self, original: Function, optimizer: Optimizer, grads_and_vars: Pairs, *args: object, **kwargs: object
    ) -> Result:
        """Do what is done around an update of apply_gradients()."""
        pairs = list(grads_and_vars)
        is_reduced = kwargs.get("experimental_aggregate_gradients") is False or kwargs.get("skip_gradients_aggregation")
        return self._around(optimizer, pairs, lambda: original(optimizer, pairs, *args, **kwargs), bool(is_reduced))

    def apply(
        self,
        original: Function,
        optimizer: Optimizer,
        grads: Structure,
        trainable_variables: Structure = None,
        **kwargs: object,
    ) -> Result:
        """Do what is done around an update of apply(), which Keras 3 has."""
        given = trainable_variables
        used = tf_keras.built_variables(optimizer) if given is None else given
        return self._around(optimizer, list(zip(grads, used)), lambda: original(optimizer, grads, given, **kwargs))

    def _around(
        self, optimizer: Optimizer, pairs: Pairs, apply: Callable[[], Result], is_reduced: bool = False
    ) -> Result:
        """Call apply(). `is_reduced` is False if it reduces the gradients over the replicas first."""
        raise NotImplementedError
