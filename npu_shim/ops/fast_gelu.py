"""The fast approximations of gelu.

Source: Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415. The second form approximates the
error function by a parabola: Kim et al., "I-BERT: Integer-only BERT Quantization", arXiv:2101.01321.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor

_FAST = 1.702
_SCALE, _SQUARE, _LIMIT = 0.7071, -0.1444, 1.769  # of the second form


def fast_gelu(features: Tensor, name: str | None = None) -> Tensor:
    """Return x / (1 + exp(-1.702 x)), the fast approximation of gelu.

    Args:
        features: x, a float tensor of any shape.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """
    x = tf.convert_to_tensor(features)
    with tf.name_scope(name or "fast_gelu"):
        return x * tf.sigmoid(_FAST * x)


def fast_gelu_grad(gradients: Tensor, features: Tensor, name: str | None = None) -> Tensor:
    """Return the gradient of fast_gelu: dy (s + 1.702 x s (1 - s)) with s = 1 / (1 + exp(-1.702 x)).

    Args:
        gradients: dy, of the shape of x.
        features: x, a float tensor of any shape.
        name: name of the ops.
    """
    x = tf.convert_to_tensor(features)
    with tf.name_scope(name or "fast_gelu_grad"):
        s = tf.sigmoid(_FAST * x)
        return gradients * (s + _FAST * x * s * (1 - s))


def fast_gelu_v2(x: Tensor, name: str | None = None) -> Tensor:
    """Return gelu with a parabola for the error function.

        y = x (0.5 + sign(x) (0.5 - 0.1444 (min(0.7071 |x|, 1.769) - 1.769)^2))

    The gradient is that of TensorFlow's ops.

    Args:
        x: float16 or float32 tensor of any shape.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "fast_gelu_v2"):
        limited = tf.minimum(_SCALE * tf.abs(x), _LIMIT) - _LIMIT
        return x * (tf.sign(x) * (_SQUARE * limited * limited + 0.5) + 0.5)


def fast_gelu_v2_operator(features: Tensor, name: str | None = None) -> Tensor:
    """Return gelu with a parabola for the error function. See fast_gelu_v2."""
    return fast_gelu_v2(features, name)
