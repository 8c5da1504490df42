"""The operators behind npu_unary_ops.gelu: gelu in tanh form, and its gradient.

    gelu(x) = 0.5 x (1 + t)  with  t = tanh(sqrt(2 / pi) (x + 0.044715 x^3))

Source: Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from npu_shim._tensorflow.tf_api import tf
from npu_shim.ops.gelu import gelu as gelu

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Tensor

_CUBE = 0.044715


def gelu_grad(gradients: Tensor, features: Tensor, activations: Tensor, name: str | None = None) -> Tensor:
    """Return the gradient of gelu: dy (0.5 (1 + t) + 0.5 x (1 - t^2) sqrt(2 / pi) (1 + 3 0.044715 x^2)).

    Args:
        gradients: dy, of the shape of x.
        features: x, a float tensor of any shape.
        activations: gelu(x); not used.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """
    x = tf.convert_to_tensor(features)
    with tf.name_scope(name or "gelu_grad"):
        factor = math.sqrt(2 / math.pi)
        t = tf.tanh(factor * (x + _CUBE * x * x * x))
        return gradients * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * factor * (1 + 3 * _CUBE * x * x))
