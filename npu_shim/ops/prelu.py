"""The parametric rectified linear unit.

Source: "Delving Deep into Rectifiers", arXiv:1502.01852.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor


def p_relu(x: Tensor, weight: Tensor, name: str | None = None) -> Tensor:
    """Return x where it is positive, else weight x.

    Its gradients are dy, or weight dy where x is not positive; and for the weight the sum of dy x where x is not
    positive.

    Args:
        x: [batch, ...], float16 or float32.
        weight: a shape that broadcasts to that of x; or [channels], where channels is the second size of x.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """
    x, weight = tf.convert_to_tensor(x), tf.convert_to_tensor(weight)
    with tf.name_scope(name or "p_relu"):
        return tf.compat.v2.where(x > 0, x, _broadcastable_weight(x, weight) * x)


prelu = p_relu


def p_relu_grad(grads: Tensor, features: Tensor, weights: Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the gradients of p_relu.

    Args:
        grads: dy, of the shape of x.
        features: x.
        weights: the weight of p_relu.
        name: name of the ops.
    Returns:
        dx, of the shape of x, and the gradient of the weight, of its shape.
    """
    x, weight = tf.convert_to_tensor(features), tf.convert_to_tensor(weights)
    with tf.name_scope(name or "p_relu_grad"):
        used = _broadcastable_weight(x, weight)
        positive = x > 0
        elementwise = tf.compat.v2.where(positive, tf.zeros_like(x), grads * x)
        _, axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(used))
        dx = tf.compat.v2.where(positive, grads, used * grads)
        return dx, tf.reshape(tf.reduce_sum(elementwise, axes), tf.shape(weight))


def _broadcastable_weight(x: Tensor, weight: Tensor) -> Tensor:
    """Return the weight in a shape that broadcasts to that of x. A vector that fits the last axis is that axis'."""
    sizes, rank = x.shape.as_list() if x.shape.rank is not None else [], weight.shape.rank
    if rank == 1 and len(sizes) > 2:
        (channels,) = weight.shape.as_list()
        if channels not in (1, sizes[-1]) and channels == sizes[1]:
            return tf.reshape(weight, [-1] + [1] * (len(sizes) - 2))
    return weight
