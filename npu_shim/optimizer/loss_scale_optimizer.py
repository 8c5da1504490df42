"""Loss scaling: keep small gradients in half precision, and skip steps that overflow."""

from __future__ import annotations

from typing import Callable

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import Gradient, LossScaleManager, Operation, Optimizer, Tensor, Value, Variable
from npu_shim.distributed.world import WORLD, world_size
from npu_shim.ops import overflow
from npu_shim.optimizer import overflow_flag
from npu_shim.optimizer.gradient_averaging import GradientAndVariable, GradientsAndVariables
from npu_shim.optimizer.wrapper import WrappingOptimizer, check_optimizer

tf = tf_api.tf


def scale_loss(loss: Tensor | Callable[[], Tensor], scale: Tensor) -> Tensor | Callable[[], Tensor]:
    """Return the loss times the scale; for a function, a function."""
    if callable(loss):
        return lambda: scale_loss(loss(), scale)
    return loss * tf.cast(scale, loss.dtype)


def unscale_gradient(gradient: Gradient, scale: Tensor) -> Gradient:
    """Return a gradient divided by the scale; None stays None.

    IndexedSlices become dense, as in the loss scale optimizers of TensorFlow 1 and of the vendor: the norm of rows that
    occur twice is another one, and so is what clipping makes of it.
    """
    if gradient is None:
        return None
    return tf.convert_to_tensor(gradient) * tf.cast(tf.math.reciprocal(scale), gradient.dtype)


def all_finite(grads_and_vars: GradientsAndVariables) -> Tensor:
    """Return a bool scalar tensor: True if no gradient has an Inf or NaN, and nothing saturated in a rehearsal."""
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g, _ in grads_and_vars if g is not None]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(v)) for v in values])
    return tf.logical_and(finite, overflow.is_overflow_flag_clear(values)) if overflow.OVERFLOW.saturates else finite


class NPULossScaleOptimizer(WrappingOptimizer):
    """Wrap an optimizer with loss scaling.

    compute_gradients scales the loss and divides the gradients by the scale.
    apply_gradients skips the whole step, including slots and global step, if a
    gradient is not finite. Then the manager updates the scale. The CPU has no
    overflow flag, so the gradients themselves are checked. On an NPU in graph
    mode of TensorFlow 2, the flag is (overflow_flag).

    Args:
        opt: a tf.compat.v1.train.Optimizer.
        loss_scale_manager: a FixedLossScaleManager or ExponentialUpdateLossScaleManager.
        is_distributed: also skip the step if another rank overflowed.
    Raises:
        TypeError: if opt is not an optimizer.
    """

    def __init__(self, opt: Optimizer, loss_scale_manager: LossScaleManager, is_distributed: bool = False) -> None:
        check_optimizer("opt", opt)
        super().__init__(opt, "NPULossScale" + opt.get_name())
        self._loss_scale_manager = loss_scale_manager
        self._is_distributed = is_distributed

    def __getattr__(self, attr: str) -> Value:
        """Return an attribute of the wrapped optimizer."""
        if attr == "_opt":  # missing while the object is copied
            raise AttributeError(attr)
        return getattr(self._opt, attr)

    def compute_gradients(
        self, loss: Tensor | Callable[[], Tensor], *args: object, **kwargs: object
    ) -> list[GradientAndVariable]:
        """Return the gradients of the loss, computed with the scaled loss and divided by the scale."""
        scale = self._loss_scale_manager.get_loss_scale()
        pairs = self._opt.compute_gradients(scale_loss(loss, scale), *args, **kwargs)
        return [(unscale_gradient(gradient, scale), variable) for gradient, variable in pairs]

    def apply_gradients(
        self, grads_and_vars: GradientsAndVariables, global_step: Variable | None = None, name: str | None = None
    ) -> Operation:
        """Return the op that applies finite gradients, skips others, and updates the scale."""
        pairs = tuple(grads_and_vars)
        return apply_if_finite(self._opt, self._loss_scale_manager, pairs, global_step, name, self._is_distributed)


def finite_on_all_ranks(finite: Tensor) -> Tensor:
    """Return a bool scalar tensor: True if ``finite`` is True on every rank."""
    if world_size() == 1:
        return finite
    hccl_ops = host_device.find_vendor_module("npu_bridge.hccl.hccl_ops")
    if hccl_ops is not None:
        return tf.equal(hccl_ops.allreduce(tf.cast(finite, tf.int32), "min", fusion=0), 1)
    from npu_shim.distributed import graph_ops

    (least,) = graph_ops.allreduce([tf.cast(finite, tf.int32)], "min", WORLD)
    return tf.equal(least, 1)


def apply_if_finite(
    opt: Optimizer,
    manager: LossScaleManager,
    pairs: GradientsAndVariables,
    global_step: Variable | None,
    name: str | None,
    is_distributed: bool = False,
) -> Operation:
    """Apply gradients if all are finite (or the check is off), then update the scale.

    With is_distributed, either all ranks apply their gradients or none does. The tensor
    ``overflow_status_reduce_all:0``, which scripts fetch, is True if nothing overflowed.
    """
    if not manager.get_enable_overflow_check():
        return opt.apply_gradients(pairs, global_step=global_step, name=name)
    finite = overflow_flag.read_and_clear_overflow_flag([gradient for gradient, _ in pairs], is_distributed)
    if finite is None:
        finite = all_finite(pairs)
        if is_distributed:
            finite = finite_on_all_ranks(finite)
        finite = tf.identity(finite, name="overflow_status_reduce_all")

    def update() -> Tensor:
        with tf.control_dependencies([opt.apply_gradients(pairs, global_step=global_step)]):
            return tf.constant(True)

    with tf_graph.enter_current_graph():
        applied = tf_api.v1.cond(finite, update, lambda: tf.constant(False))
    with tf.control_dependencies([applied]):
        return tf.group(manager.update_loss_scale(finite), name=name)
