"""Layer normalization.

    y = (x - mean) / sqrt(variance + epsilon) gamma + beta

Source: Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor

_EPSILON = 1e-12  # of the gradient operator, which does not get that of the forward operator


def fused_layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, begin_norm_axis: int = 0, begin_params_axis: int = 0, epsilon: float = 1e-7,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalize x over the axes from begin_norm_axis.

    Args:
        x: float16 or float32 tensor.
        gamma: of the shape of x from begin_params_axis.
        beta: likewise.
        begin_norm_axis: the first axis of the statistics.
        begin_params_axis: the first axis of gamma and beta.
        epsilon: added to the variance.
        name: name of the ops.
    Returns:
        y, mean and variance; the statistics have size 1 in their axes.
    """
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "fused_layer_norm"):
        mean, variance = tf.nn.moments(x, list(range(x.shape.rank))[begin_norm_axis:], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon), mean, variance


def fused_layer_norm_grad(
    dy: Tensor, x: Tensor, variance: Tensor, mean: Tensor, gamma: Tensor, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of fused_layer_norm, with a = (x - mean) / sqrt(variance + 1e-12) and g = dy gamma.

        dx = (g - mean(g) - a mean(g a)) / sqrt(variance + 1e-12),  dgamma = sum(dy a),  dbeta = sum(dy)

    Args:
        dy: of the shape of x.
        x: the input of fused_layer_norm.
        variance: its result, with size 1 in the axes of the statistics.
        mean: likewise.
        gamma: the scale.
        name: name of the ops.
    Returns:
        pd_x, pd_gamma and pd_beta, of the shapes of x, gamma and gamma.
    """
    x, gamma, mean = tf.convert_to_tensor(x), tf.convert_to_tensor(gamma), tf.convert_to_tensor(mean)
    with tf.name_scope(name or "fused_layer_norm_grad"):
        axes = [axis for axis, size in enumerate(mean.shape.as_list()) if size == 1]
        inverse = tf.math.rsqrt(variance + _EPSILON)
        a, g = (x - mean) * inverse, dy * gamma
        dx = (g - tf.reduce_mean(g, axes, keepdims=True) - a * tf.reduce_mean(g * a, axes, keepdims=True)) * inverse
        outer = list(range(x.shape.rank - gamma.shape.rank))
        return dx, tf.reduce_sum(dy * a, outer), tf.reduce_sum(dy, outer)


def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, begin_norm_axis: int = 0, begin_params_axis: int = 0, epsilon: float = 1e-7,
    name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """Normalize x over the axes from begin_norm_axis. Arguments and results as for fused_layer_norm, as a list."""
    return list(fused_layer_norm(x, gamma, beta, begin_norm_axis, begin_params_axis, epsilon, name))
