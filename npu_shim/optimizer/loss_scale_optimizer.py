"""Loss scaling: small gradients survive half precision, and a step that overflows is skipped whole."""

from __future__ import annotations

from typing import Any

from npu_shim import _device, _tf
from npu_shim.distributed.world import WORLD, world_size
from npu_shim.optimizer.wrapper import WrappingOptimizer, check_optimizer

tf = _tf.tf


def scale_loss(loss: Any, scale: Any) -> Any:
    """The loss times the scale; of a function, a function."""
    if callable(loss):
        return lambda: scale_loss(loss(), scale)
    return loss * tf.cast(scale, loss.dtype)


def unscale(gradient: Any, scale: Any) -> Any:
    """A gradient divided by the scale; None and sparse gradients keep their form."""
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(unscale(gradient.values, scale), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(tf.math.reciprocal(scale), gradient.dtype)


def all_finite(grads_and_vars: Any) -> Any:
    """A bool scalar: no gradient has an infinity or NaN."""
    values = [g.values if isinstance(g, tf.IndexedSlices) else g for g, _ in grads_and_vars if g is not None]
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(v)) for v in values])


@_device.on_card("npu_bridge.estimator.npu.npu_loss_scale_optimizer")
class NPULossScaleOptimizer(WrappingOptimizer):
    """Wraps an optimizer with loss scaling.

    compute_gradients scales the loss and divides the gradients by the scale;
    apply_gradients skips the whole step, slots and global step included, when a
    gradient is not finite, and then lets the manager move the scale. On the CPU
    there is no overflow register, so the gradients themselves are looked at.

    Args:
        opt: a tf.compat.v1.train.Optimizer.
        loss_scale_manager: a FixedLossScaleManager or ExponentialUpdateLossScaleManager.
        is_distributed: also skip the step when another rank overflowed.
    Raises:
        TypeError: opt is no optimizer.
    """

    def __init__(self, opt: Any, loss_scale_manager: Any, is_distributed: bool = False) -> None:
        check_optimizer("opt", opt)
        super().__init__(opt, "NPULossScale" + opt.get_name())
        self._loss_scale_manager = loss_scale_manager
        self._is_distributed = is_distributed

    def __getattr__(self, attr: str) -> Any:
        """What this class lacks is asked of the wrapped optimizer."""
        if attr == "_opt":  # not there yet while it is copied
            raise AttributeError(attr)
        return getattr(self._opt, attr)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = WrappingOptimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> Any:
        """Gradients of the loss, computed with the scaled loss and divided by the scale."""
        scale = self._loss_scale_manager.get_loss_scale()
        pairs = self._opt.compute_gradients(
            scale_loss(loss, scale),
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        return [(unscale(gradient, scale), variable) for gradient, variable in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The op that applies finite gradients, skips others, and updates the scale."""
        pairs = tuple(grads_and_vars)
        return apply_if_finite(self._opt, self._loss_scale_manager, pairs, global_step, name, self._is_distributed)


def finite_everywhere(finite: Any) -> Any:
    """A bool scalar: it is true on every rank."""
    if world_size() == 1:
        return finite
    from npu_shim.distributed import graph_ops

    (least,) = graph_ops.allreduce([tf.cast(finite, tf.int32)], "min", WORLD)
    return tf.equal(least, 1)


def apply_if_finite(
    opt: Any, manager: Any, pairs: Any, global_step: Any, name: str | None, is_distributed: bool = False
) -> Any:
    """Applies gradients where all are finite (or nobody checks), then updates the scale.

    With is_distributed all ranks apply theirs, or none does.
    """
    if not manager.get_enable_overflow_check():
        return opt.apply_gradients(pairs, global_step=global_step, name=name)
    finite = all_finite(pairs)
    if is_distributed:
        finite = finite_everywhere(finite)

    def update() -> Any:
        with tf.control_dependencies([opt.apply_gradients(pairs, global_step=global_step)]):
            return tf.constant(True)

    applied = _tf.v1.cond(finite, update, lambda: tf.constant(False))
    with tf.control_dependencies([applied]):
        return tf.group(manager.update_loss_scale(finite), name=name)
