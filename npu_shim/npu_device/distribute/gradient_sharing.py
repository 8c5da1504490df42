"""Keras optimizers that train one model on the global batches of all ranks."""

from __future__ import annotations

from typing import Iterable, Sequence

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Function, Gradient, Optimizer, Result, Structure, Variable
from npu_shim.npu_device.distribute.averaging_tapes import average_over_examples, patch_tapes_to_average
from npu_shim.npu_device.distribute.hccl import broadcast, is_worker
from npu_shim.npu_device.utils.scope import npu_optimizer_scope
from npu_shim.optimizer.distributed import npu_allreduce
from npu_shim.optimizer.gradient_averaging import (
    GradientAndVariable,
    gradients_marked_as_reduced,
    pop_averaged_marks,
    strategy_reduces_gradients,
)


def distributed_optimizer(optimizer: Optimizer | str) -> Optimizer:
    """Make a Keras optimizer train with the averages of the gradients over the ranks.

    Gradients are averaged where a tf.GradientTape computes them, so that the script clips, logs and accumulates
    those of one process (see average_tapes), or else where the optimizer gets them, before it clips and applies them.

    Before its first update the variables that it updates get the values of rank 0. A loss scale optimizer is given
    itself, not its inner optimizer: all ranks then see the same overflow. In replicas of NPUStrategy gradients are
    added up, because losses are divided by the number of replicas.

    Args:
        optimizer: a Keras optimizer, which is changed, or its name. A second call changes nothing.
    Returns:
        The optimizer.
    """
    optimizer = tf.keras.optimizers.get(optimizer)
    if is_worker("npu.distribute.distributed_optimizer") and find_sharing(optimizer) is None:
        tf_keras.patch_eager_variable_creation()
        patch_tapes_to_average()
        name = "apply" if hasattr(optimizer, "apply") else "apply_gradients"  # apply_gradients of Keras 3 calls apply
        sharing = _Sharing(getattr(optimizer, name))
        inner = find_sharing(getattr(optimizer, "inner_optimizer", None))
        if inner is not None:
            inner.is_inner = True
        setattr(optimizer, name, getattr(sharing, name))
    return optimizer


def find_sharing(optimizer: Optimizer | None) -> _Sharing | None:
    """Return the state of an optimizer of distributed_optimizer(); None for another optimizer."""
    for name in ("apply", "apply_gradients"):
        owner = getattr(getattr(optimizer, name, None), "__self__", None)
        if isinstance(owner, _Sharing):
            return owner
    return None


class _Sharing:
    """The state of a distributed optimizer.

    Attributes:
        is_inner: a loss scale optimizer around it averages the gradients.
    """

    def __init__(self, original: Function) -> None:
        self.is_inner = False
        self._original = original
        self._is_broadcast = False

    def apply_gradients(self, grads_and_vars: Iterable[GradientAndVariable], *args: object, **kwargs: object) -> Result:
        if kwargs.get("skip_gradients_aggregation") or not kwargs.get("experimental_aggregate_gradients", True):
            return self._original(grads_and_vars, *args, **kwargs)
        pairs = list(grads_and_vars)
        gradients = self._average_gradients([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
        with npu_optimizer_scope(), gradients_marked_as_reduced():
            return self._original(list(zip(gradients, [variable for _, variable in pairs])), *args, **kwargs)

    def apply(
        self, grads: Sequence[Gradient], trainable_variables: Structure = None, *args: object, **kwargs: object
    ) -> Result:
        variables = None if trainable_variables is None else list(trainable_variables)
        gradients = self._average_gradients(list(grads), variables or [])
        with npu_optimizer_scope(), gradients_marked_as_reduced():
            return self._original(gradients, variables, *args, **kwargs)

    def _average_gradients(self, gradients: list[Gradient], variables: list[Variable]) -> list[Gradient]:
        if self.is_inner:
            return gradients
        if (
            strategy_reduces_gradients()
        ):  # in a replica of NPUStrategy, whose losses are divided by the number of replicas
            return list(npu_allreduce(gradients, "sum"))
        own = [tf_keras.tensorflow_variable(variable) for variable in variables]
        if not self._is_broadcast and own:
            self._is_broadcast = True
            with tf.init_scope():  # once: while a tf.function is traced, before it runs
                broadcast(own)
        if pop_averaged_marks([variable for gradient, variable in zip(gradients, own) if gradient is not None]):
            return gradients
        return average_over_examples(gradients)
