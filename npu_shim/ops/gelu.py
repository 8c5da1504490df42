"""Gelu, in the tanh form the NPU computes, with its analytic gradient.

    gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x s(t)
    t       = x (2a + 2ab x^2),  a = sqrt(2/pi),  b = 0.044715,  s(t) = 1 / (1 + exp(-t))

The logistic form keeps the digits that 1 + tanh loses for negative x. With
t' = 2a + 6ab x^2 the derivatives are

    gelu'(x)  = s (1 + x (1-s) t')
    gelu''(x) = s (1-s) (2 t' + x ((1-2s) t'^2 + t''))

Where |t| is so large that s is 0 or 1 in the type's precision, the limits are
taken: gelu is 0 or x, its gradient 0 or 1, also at infinity. NaN stays NaN.
"""
from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

from npu_shim import _device, _tf

tf = _tf.tf
_where = tf.compat.v2.where  # the older one says at each first use that it is old

_2A = 2 * math.sqrt(2 / math.pi)
_2AB = _2A * 0.044715
_CUT = {"float32": 87.0, "float64": 708.0}  # exp(-cut) is the smallest normal number


def gelu(features: Any, name: Optional[str] = None) -> Any:
    """The Gaussian error linear unit, tanh form.

    On the card it is the vendor's op. On the CPU it is TensorFlow's ops with
    an analytic gradient, which keeps nothing but x and also holds inside loops,
    branches and functions; float16 and bfloat16 are computed in float32 and
    rounded once. The second gradient is analytic too.

    Args:
        features: tensor x of any shape; float16, bfloat16, float32 or float64.
        name: of the op.
    Returns:
        A tensor with x's shape and type.
    Raises:
        ValueError: x is no float tensor.
    """
    x = tf.convert_to_tensor(features, name="features")
    if not x.dtype.is_floating:
        raise ValueError(f"features={x!r} is {x.dtype.name}, but must be a float tensor: write tf.cast(x, tf.float32).")
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu_unary_ops").npu_unary_ops.gelu(x, name=name)
    with tf.name_scope(name or "gelu"):
        if tf.executing_eagerly():
            return _eager_gelu(x)
        return _tf.with_gradient(_forward(x), [x], "NpuShimGelu")


@tf.RegisterGradient("NpuShimGelu")
@_tf.gradient_of
def _gelu_gradient(x: Any, dy: Any) -> List[Any]:
    return [_tf.with_gradient(_backward(x, dy), [x, dy], "NpuShimGeluGrad")]


@tf.RegisterGradient("NpuShimGeluGrad")
@_tf.gradient_of
def _gelu_second_gradient(x: Any, dy: Any, ddx: Any) -> List[Any]:
    return [_second(x, dy, ddx), _backward(x, ddx)]


@tf.custom_gradient
def _eager_gelu(x: Any) -> Tuple[Any, Any]:
    return _forward(x), lambda dy: _backward(x, dy)


def _forward(x: Any) -> Any:
    v = _wide(x)
    t, s, _, cut = _gate(v)
    y = _where(t < -cut, tf.zeros_like(v), v * s)
    return tf.cast(y, x.dtype)


def _backward(x: Any, dy: Any) -> Any:
    v = _wide(x)
    t, s, rest, cut = _gate(v)
    slope = s * (1.0 + v * rest * (3.0 * _2AB * tf.square(v) + _2A))
    slope = _where(t > cut, tf.ones_like(v), _where(t < -cut, tf.zeros_like(v), slope))
    return tf.cast(_wide(dy) * slope, x.dtype)


def _second(x: Any, dy: Any, ddx: Any) -> Any:
    v = _wide(x)
    t, s, rest, cut = _gate(v)
    d1, d2 = 3.0 * _2AB * tf.square(v) + _2A, 6.0 * _2AB * v
    bend = s * rest * (2.0 * d1 + v * ((rest - s) * tf.square(d1) + d2))
    bend = _where(tf.abs(t) > cut, tf.zeros_like(v), bend)
    return tf.cast(_wide(dy) * _wide(ddx) * bend, x.dtype)


def _gate(v: Any) -> Tuple[Any, Any, Any, float]:
    """t, s(t) and 1 - s(t), each to full relative precision, and the cut."""
    t = v * (_2AB * tf.square(v) + _2A)
    e = tf.exp(-tf.abs(t))
    r = 1.0 / (1.0 + e)
    positive = t >= 0
    return t, _where(positive, r, e * r), _where(positive, e * r, r), _CUT[v.dtype.name]


def _wide(x: Any) -> Any:
    """Half types have too few digits to compute in."""
    return tf.cast(x, tf.float32) if x.dtype.name not in _CUT else x
