"""Loss scale managers: a constant loss scale, and one that adapts to overflows."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import DType, Operation, Tensor, Variable

tf = tf_api.tf
_LARGEST = 3.4e38  # of float32


class LossScaleManager:
    """Interface of a loss scale manager for a loss scale optimizer."""

    def get_loss_scale(self) -> Tensor:
        """Return the loss scale, a float32 scalar tensor."""
        raise NotImplementedError

    def update_loss_scale(self, finite_grads: Tensor) -> Operation:
        """Return the op that updates the loss scale after a step; finite_grads is a bool scalar tensor."""
        raise NotImplementedError


class FixedLossScaleManager(LossScaleManager):
    """A constant loss scale. In graph mode it is the tensor ``loss_scale:0``, as with the vendor's class.

    Args:
        loss_scale: float of at least 1.
        enable_overflow_check: if False, every update is applied, even after an overflow.
    Raises:
        ValueError: if loss_scale is less than 1.
    """

    def __init__(self, loss_scale: float, enable_overflow_check: bool = True) -> None:
        if not loss_scale >= 1:
            raise ValueError(f"loss_scale={loss_scale!r} is not allowed: it must be at least 1.")
        self._loss_scale = float(loss_scale)
        self._enable_overflow_check = enable_overflow_check
        self._tensor = self._constant()

    def get_enable_overflow_check(self) -> bool:
        """Return True if an update with an overflow is skipped."""
        return self._enable_overflow_check

    def get_loss_scale(self) -> Tensor:
        """Return the loss scale, a float32 scalar tensor."""
        if self._tensor is not None and self._tensor.graph is tf_api.v1.get_default_graph():
            return self._tensor
        return self._constant()

    def _constant(self) -> Tensor:
        return tf.constant(self._loss_scale, tf.float32, name="loss_scale")

    def update_loss_scale(self, finite_grads: Tensor) -> Operation:
        """Return an op that does nothing."""
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A loss scale that grows after finite steps and shrinks after overflows.

    After incr_every_n_steps finite steps in a row the loss scale is multiplied
    by incr_ratio, unless it would exceed float32. After decr_every_n_nan_or_inf
    steps with an overflow it is multiplied by decr_ratio, but never below 1. An
    overflow sets the count of finite steps to zero. A change of the loss scale
    sets both counts to zero. With TensorFlow 1 the tensor ``loss_scale:0`` is the
    loss scale, as with the vendor's class.

    Args:
        init_loss_scale: float of at least 1.
        incr_every_n_steps, decr_every_n_nan_or_inf: int of at least 1.
        incr_ratio: at least 1.
        decr_ratio: in (0, 1].
    Raises:
        ValueError: if an argument is not allowed.
    """

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        allowed = (
            ("init_loss_scale", init_loss_scale, init_loss_scale >= 1, "at least 1"),
            ("incr_every_n_steps", incr_every_n_steps, incr_every_n_steps >= 1, "at least 1"),
            ("decr_every_n_nan_or_inf", decr_every_n_nan_or_inf, decr_every_n_nan_or_inf >= 1, "at least 1"),
            ("incr_ratio", incr_ratio, incr_ratio >= 1, "at least 1"),
            ("decr_ratio", decr_ratio, 0 < decr_ratio <= 1, "greater than 0 and at most 1"),
        )
        for name, value, good, text in allowed:
            if not good:
                raise ValueError(f"{name}={value!r} is not allowed: it must be {text}.")
        self._incr_every, self._decr_every = incr_every_n_steps, decr_every_n_nan_or_inf
        self._incr_ratio, self._decr_ratio = float(incr_ratio), float(decr_ratio)
        self._scale = _create_scale_variable("loss_scale", float(init_loss_scale), tf.float32)
        self._good = _create_scale_variable("good_steps", 0, tf.int64)
        self._bad = _create_scale_variable("bad_steps", 0, tf.int64)

    def get_enable_overflow_check(self) -> bool:
        """Return True: this manager needs the check."""
        return True

    def get_loss_scale(self) -> Tensor:
        """Return the loss scale, a float32 scalar tensor."""
        return tf.convert_to_tensor(self._scale)

    def update_loss_scale(self, finite_grads: Tensor) -> Operation:
        """Return the op that counts a step and updates the loss scale."""
        scale, good, bad = (tf.identity(v) for v in (self._scale, self._good, self._bad))
        good = tf.where(finite_grads, good + 1, tf.zeros_like(good))
        bad = tf.where(finite_grads, bad, bad + 1)
        grow, shrink = good >= self._incr_every, bad >= self._decr_every
        grown = tf.where(scale < _LARGEST / self._incr_ratio, scale * self._incr_ratio, scale)
        new = tf.where(grow, grown, tf.where(shrink, tf.maximum(1.0, scale * self._decr_ratio), scale))
        reset = tf.logical_or(grow, shrink)
        with tf.control_dependencies([new, good, bad]):
            return tf.group(
                self._scale.assign(new),
                self._good.assign(tf.where(reset, tf.zeros_like(good), good)),
                self._bad.assign(tf.where(reset, tf.zeros_like(bad), bad)),
            )


def _create_scale_variable(name: str, value: float, dtype: DType) -> Variable:
    # TensorFlow's default type of variable: scripts fetch "loss_scale:0", which is a handle for a resource variable
    return tf_api.v1.Variable(value, name=name, trainable=False, dtype=dtype)
