"""Dropout whose mask depends on a seed and an offset only.

Source: Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR 15, 2014.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor


def stateless_dropout(
    x: Tensor, noise_shape: Tensor, p: Tensor, seed: Tensor, offset: Tensor, name: str | None = None
) -> Tensor:
    """Drop each element with probability p, and scale the others by 1 / (1 - p). The gradient has the same mask.

    Args:
        x: float tensor.
        noise_shape: int64 vector, the shape of the mask before it is broadcast to that of x.
        p: scalar, the probability to DROP an element.
        seed: int64 scalar.
        offset: int64 scalar.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type. On the NPU other elements are dropped.
    """
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "stateless_dropout"):
        pair = tf.stack([tf.reshape(tf.cast(number, tf.int64), []) for number in (seed, offset)])
        rate = tf.reshape(tf.cast(p, tf.float32), [])
        kept = tf.random.stateless_uniform(noise_shape, pair) >= rate
        scaled = x / tf.cast(1 - rate, x.dtype)
        return tf.compat.v2.where(kept, scaled, tf.zeros_like(scaled))
