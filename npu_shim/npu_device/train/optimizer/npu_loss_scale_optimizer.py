"""Loss scaling for Keras optimizers that skips a step on all ranks if the gradients of one are not finite.

The NPU knows from its overflow flag that numbers overflowed. The CPU has none, so the gradients themselves are checked.
"""

from __future__ import annotations

import functools
from typing import Iterable, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import (
    Gradient,
    Operation,
    Optimizer,
    OptimizerClass,
    Result,
    Tensor,
    Value,
    Variable,
)
from npu_shim.distributed.world import world_size
from npu_shim.ops.overflow import OVERFLOW
from npu_shim.optimizer.gradient_averaging import GradientAndVariable
from npu_shim.optimizer.loss_scale_optimizer import all_finite, finite_on_all_ranks

_MARK = "_npu_shim_loss_scale"


class _OptimizerFactory(type):
    """A class whose call returns a subclass of Keras' own LossScaleOptimizer, so that Keras accepts it everywhere."""

    def __instancecheck__(cls, instance: object) -> bool:
        return getattr(type(instance), _MARK, False)


class _LossScaleFactory(_OptimizerFactory):
    def __call__(
        cls,
        inner_optimizer: Optimizer,
        dynamic: bool = True,
        initial_scale: float | None = None,
        dynamic_growth_steps: int | None = None,
    ) -> Optimizer:
        base: OptimizerClass = tf_keras.loss_scale_optimizer_class(inner_optimizer)
        if base is None:
            raise RuntimeError(
                f"npu.train.optimizer.NpuLossScaleOptimizer needs tf.keras.mixed_precision.LossScaleOptimizer, which "
                f"TensorFlow {tf.__version__} does not have. Use NPULossScaleOptimizer of npu_shim.npu_init."
            )
        given: dict[str, object] = {"initial_scale": initial_scale, "dynamic_growth_steps": dynamic_growth_steps}
        given = {name: value for name, value in given.items() if value is not None}
        if not dynamic and initial_scale is None:
            raise ValueError("dynamic=False needs initial_scale, the loss scale of every step.")
        if not dynamic and dynamic_growth_steps is not None:
            raise ValueError(f"dynamic_growth_steps={dynamic_growth_steps} needs dynamic=True. Remove it.")
        optimizer = _class_with_agreement(base)(
            inner_optimizer, **({} if _is_keras3(base) else {"dynamic": dynamic}), **given
        )
        if _is_keras3(base):
            optimizer.is_static = not dynamic
        return optimizer


class NpuLossScaleOptimizer(metaclass=_LossScaleFactory):
    """Wrap a Keras optimizer with loss scaling.

    A step is skipped if a gradient of any rank is not finite; iterations still counts it. The dynamic scale is halved
    then, to no less than 1, and doubled after dynamic_growth_steps finite steps. The result is of a subclass of
    tf.keras.mixed_precision.LossScaleOptimizer; isinstance also finds it to be of this class. Its property
    last_step_finite is a bool variable: False if the last step was skipped, and before the first.

    Args:
        inner_optimizer: a Keras optimizer.
        dynamic: False for a fixed scale.
        initial_scale: the scale at first, 2^15 if None; needed with dynamic=False.
        dynamic_growth_steps: steps until the scale is doubled, 2000 if None.
    Raises:
        RuntimeError: this TensorFlow's Keras has no LossScaleOptimizer (1.15).
        ValueError: dynamic=False contradicts the other arguments.
    """


class _ExperimentalFactory(_OptimizerFactory):
    def __call__(cls, optimizer: Optimizer, loss_scale: Value) -> Optimizer:
        if loss_scale == "dynamic":
            return NpuLossScaleOptimizer(optimizer)  # type: ignore[call-arg]
        initial = getattr(loss_scale, "initial_loss_scale", None)  # of a DynamicLossScale
        if initial is not None:
            steps = loss_scale.increment_period
            return NpuLossScaleOptimizer(  # type: ignore[call-arg]
                optimizer, initial_scale=initial, dynamic_growth_steps=steps
            )
        fixed = loss_scale() if callable(loss_scale) else loss_scale  # a FixedLossScale, or a number
        return NpuLossScaleOptimizer(optimizer, False, float(fixed))  # type: ignore[call-arg]


class NpuExperimentalLossScaleOptimizer(metaclass=_ExperimentalFactory):
    """Wrap a Keras optimizer with loss scaling, with the arguments of Keras' experimental class.

    Args:
        optimizer: a Keras optimizer.
        loss_scale: "dynamic", a number for a fixed scale, or a loss scale of tf.mixed_precision.experimental.
    """


@functools.lru_cache(maxsize=None)
def _class_with_agreement(base: OptimizerClass) -> OptimizerClass:
    """Return a subclass of one of Keras' LossScaleOptimizers whose ranks agree on which steps to skip."""

    def __init__(self: Optimizer, *args: object, **kwargs: object) -> None:
        base.__init__(self, *args, **kwargs)
        with tf.init_scope():
            self._npu_last_step_finite = tf.Variable(False, trainable=False, name="npu_last_step_finite")

    members: dict[str, object] = {
        _MARK: True,
        "__module__": base.__module__,
        "__init__": __init__,
        "last_step_finite": property(lambda self: self._npu_last_step_finite),
    }
    members.update(_keras3_members(base) if _is_keras3(base) else _keras2_members(base))
    return type(base)(base.__name__, (base,), members)


def _is_keras3(base: OptimizerClass) -> bool:
    return hasattr(base, "apply")


def _keras2_members(base: OptimizerClass) -> dict[str, object]:
    def apply_gradients(
        self: Optimizer, grads_and_vars: Iterable[GradientAndVariable], *args: object, **kwargs: object
    ) -> Result:
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        finite = _all_ranks_finite(self, [gradient for gradient, _ in pairs])
        if self.dynamic:
            marked = _as_nan_if_not_finite([gradient for gradient, _ in pairs], finite)
            return base.apply_gradients(self, list(zip(marked, variables)), *args, **kwargs)
        with tf.init_scope():
            tf_keras.build_optimizer(self.inner_optimizer, variables)

        def update() -> Tensor:
            return _constant_after(base.apply_gradients(self, pairs, *args, **kwargs))

        return tf.cond(finite, update, lambda: _constant_after(self.inner_optimizer.iterations.assign_add(1)))

    return {"apply_gradients": apply_gradients}


def _keras3_members(base: OptimizerClass) -> dict[str, object]:
    def apply(
        self: Optimizer, grads: Sequence[Gradient], trainable_variables: Sequence[Variable] | None = None
    ) -> None:
        finite = _all_ranks_finite(self, list(grads))
        base.apply(self, _as_nan_if_not_finite(list(grads), finite), trainable_variables)
        if self.is_static:
            self.dynamic_scale.assign(self.initial_scale)
            self.step_counter.assign(0)
        else:
            self.dynamic_scale.assign(tf.maximum(tf.convert_to_tensor(self.dynamic_scale), 1.0))

    return {"apply": apply, "is_static": False}


def _all_ranks_finite(optimizer: Optimizer, gradients: list[Gradient]) -> Tensor:
    """Return a bool tensor, the same on all ranks: True if all gradients are finite. Note it as last_step_finite."""
    finite = finite_on_all_ranks(all_finite([(gradient, None) for gradient in gradients]))
    noted = optimizer.last_step_finite.assign(finite)
    with tf.control_dependencies([] if tf.executing_eagerly() else [noted]):
        return tf.identity(finite)


def _as_nan_if_not_finite(gradients: list[Gradient], finite: Tensor) -> list[Gradient]:
    """Return the gradients as NaN if the step is skipped for another reason, so that Keras' own check sees it.

    The reasons are gradients of another rank, and a rehearsal with saturation.
    """
    if world_size() == 1 and not OVERFLOW.saturates:
        return gradients
    factor = tf.compat.v2.where(finite, 1.0, float("nan"))

    def times(gradient: Gradient) -> Gradient:
        if gradient is None:
            return None
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(times(gradient.values), gradient.indices, gradient.dense_shape)
        return gradient * tf.cast(factor, gradient.dtype)

    return [times(gradient) for gradient in gradients]


def _constant_after(op: Operation) -> Tensor:
    """Return a tensor that is ready when an op is done."""
    with tf.control_dependencies([] if op is None or tf.executing_eagerly() else [op]):
        return tf.constant(True)


host_device.copy_vendor_names(__name__)
