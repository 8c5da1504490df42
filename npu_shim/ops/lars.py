"""LARS: a gradient scaled by the norms of weight and gradient.

Source: You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", arXiv:1708.03888.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops.graph_mode import only_in_graphs


def lars_v2(
    input_weight: Tensor, input_grad: Tensor, weight_decay: Tensor | float, learning_rate: Tensor | float,
    hyperpara: float = 0.001, epsilon: float = 1e-05, use_clip: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the gradient scaled by the norms of weight and gradient.

        rate = hyperpara |w| / (|g| + weight_decay |w| + epsilon)
        result = rate (g + weight_decay w)

    With use_clip the rate is divided by the learning rate and limited to 1. The rate is 1 if a norm is 0.

    Args:
        input_weight: w, of any shape; float32.
        input_grad: g, of the same shape.
        weight_decay: scalar.
        learning_rate: scalar.
        hyperpara: the trust coefficient.
        epsilon: avoids a division by 0.
        use_clip: limit the rate.
        name: name of the ops.
    Returns:
        A tensor of the shape of w.
    """
    with tf.name_scope(name or "lars_v2"):
        weight, gradient = tf.convert_to_tensor(input_weight), tf.convert_to_tensor(input_grad)
        decay = tf.cast(weight_decay, weight.dtype)
        w_norm, g_norm = tf.norm(weight), tf.norm(gradient)
        rate = hyperpara * w_norm / (g_norm + decay * w_norm + epsilon)
        if use_clip:
            rate = tf.minimum(rate / tf.cast(learning_rate, weight.dtype), 1.0)
        rate = tf.compat.v2.where(tf.logical_and(w_norm > 0, g_norm > 0), rate, tf.ones_like(rate))
        return rate * (gradient + decay * weight)


def lars(
    inputs_w: Sequence[Tensor],
    inputs_g: Sequence[Tensor],
    weight_decay: Tensor | float,
    hyperpara: float = 0.001,
    epsilon: float = 1e-05,
    name: str | None = None,
) -> list[Tensor]:
    """Return several gradients, each scaled as by lars_v2 without use_clip.

    Args:
        inputs_w: the weights, of any shapes; float32.
        inputs_g: their gradients.
        weight_decay: scalar.
        hyperpara: the trust coefficient.
        epsilon: avoids a division by 0.
        name: name of the ops.
    Returns:
        A tensor for each weight, of its shape.
    Raises:
        ValueError: the lists differ in length.
    """
    if len(inputs_w) != len(inputs_g):
        raise ValueError(
            f"lars: {len(inputs_w)} weights and {len(inputs_g)} gradients. Pass one gradient for each weight."
        )
    with tf.name_scope(name or "lars"):
        return [lars_v2(w, g, weight_decay, 0.0, hyperpara, epsilon) for w, g in zip(inputs_w, inputs_g)]


LARS = only_in_graphs("npu_ops.LARS")(lars)
LARSV2 = only_in_graphs("npu_ops.LARSV2")(lars_v2)
