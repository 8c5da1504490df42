"""Gelu, in the tanh form the NPU computes, with its analytic gradient.

    gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x s(t)
    t       = x (2a + 2ab x^2),  a = sqrt(2/pi),  b = 0.044715,  s(t) = 1 / (1 + e),  e = exp(-t)

The logistic form keeps the digits that 1 + tanh loses for negative x. With
t' = 2a + 6ab x^2 and 1 - s = e s the derivatives are

    gelu'(x)  = s + s (x t' e s)
    gelu''(x) = s (1-s) (2 t' + x ((1-2s) t'^2 + t''))

Where |t| is so large that s is 0 or 1 in the type's precision, the limits are
taken: gelu is 0 or x, its gradient 0 or 1, also at infinity. NaN stays NaN.
"""
from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

import numpy as np

from npu_shim import _device, _tf, _xla

tf = _tf.tf
_where = tf.compat.v2.where  # the older one says at each first use that it is old

_2A = 2 * math.sqrt(2 / math.pi)
_2AB = _2A * 0.044715
_LIMITS = {"float32": 10.0, "float64": 20.9}  # beyond which |x| s(t) (1 - s(t)) is 0 in the type's precision


def gelu(features: Any, name: Optional[str] = None) -> Any:
    """The Gaussian error linear unit, tanh form.

    On the card it is the vendor's op. On the CPU it is one compiled function
    for large tensors and TensorFlow's ops for small ones (see npu_shim/_xla.py),
    with an analytic gradient, which also holds inside loops, branches and
    functions, and keeps nothing but x of a large tensor; float16 and bfloat16
    are computed in float32 and rounded once. The second gradient is analytic too.

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
        if _is_small(x):
            y, *kept = _forward(x)
            return _tf.with_gradient(y, [x] + kept, "NpuShimSmallGelu")
        return _tf.with_gradient(_value(x), [x], "NpuShimGelu")


def _is_small(x: Any) -> bool:
    count = x.shape.num_elements()
    return count is not None and count < _xla.LEAST_ELEMENTS


@tf.RegisterGradient("NpuShimSmallGelu")
@_tf.gradient_of
def _small_gradient(x: Any, u: Any, e: Any, s: Any, dy: Any) -> List[Any]:
    return [_tf.with_gradient(_backward(x, u, e, s, dy), [x, dy], "NpuShimGeluGrad"), None, None, None]


@tf.RegisterGradient("NpuShimGelu")
@_tf.gradient_of
def _gelu_gradient(x: Any, dy: Any) -> List[Any]:
    return [_tf.with_gradient(_slope(x, dy), [x, dy], "NpuShimGeluGrad")]


@tf.RegisterGradient("NpuShimGeluGrad")
@_tf.gradient_of
def _gelu_second_gradient(x: Any, dy: Any, ddx: Any) -> List[Any]:
    return [_second(x, dy, ddx), _slope(x, ddx)]


@tf.custom_gradient
def _eager_gelu(x: Any) -> Tuple[Any, Any]:
    return _value(x), lambda dy: _slope(x, dy)


def _value(x: Any) -> Any:
    """gelu(x), in the form that suits the number of elements."""
    if x.dtype == tf.float64:
        return _forward(x)[0]
    return _xla.by_size(x, lambda: _forward(x)[0], lambda: _xla.over_elements(_COMPILED_VALUE, [x]))


def _slope(x: Any, dy: Any) -> Any:
    """dy gelu'(x), likewise."""
    def small() -> Any:
        _, u, e, s = _forward(x)
        return _backward(x, u, e, s, dy)

    if x.dtype == tf.float64:
        return small()
    return _xla.by_size(x, small, lambda: _xla.over_elements(_COMPILED_SLOPE, [x, dy]))


# ---- in TensorFlow's ops, as few as possible. Where s is 0 or 1, multiply_no_nan takes the limit; s has the NaNs of x.


def _forward(x: Any) -> Tuple[Any, ...]:
    """gelu(x), and for the gradient x^2, e and s."""
    v = _wide(x)
    u = tf.square(v)
    e = tf.exp(v * (-_2A - _2AB * u))
    s = 1.0 / (1.0 + e)
    return tf.cast(tf.math.multiply_no_nan(v, s), x.dtype), u, e, s


def _backward(x: Any, u: Any, e: Any, s: Any, dy: Any) -> Any:
    rest = tf.math.multiply_no_nan(e, s)  # 1 - s
    slope = s + s * tf.math.multiply_no_nan(_wide(x) * (3.0 * _2AB * u + _2A), rest)
    return tf.cast(_wide(dy) * slope, x.dtype)


def _second(x: Any, dy: Any, ddx: Any) -> Any:
    v = _wide(x)
    s, rest, spread = _gate(v)
    d1, d2 = 3.0 * _2AB * tf.square(v) + _2A, 6.0 * _2AB * v
    bend = spread * (2.0 * d1 + v * ((rest - s) * tf.square(d1) + d2))
    bend = _where(tf.abs(v) > _LIMITS[v.dtype.name], tf.zeros_like(v), bend)
    return tf.cast(_wide(dy) * _wide(ddx) * bend, x.dtype)


def _gate(v: Any) -> Tuple[Any, Any, Any]:
    """s, 1 - s and s (1 - s), each to full relative precision and without a number that overflows."""
    t = v * (_2AB * tf.square(v) + _2A)
    e = tf.exp(-tf.abs(t))
    r = 1.0 / (1.0 + e)
    return _where(t >= 0, r, e * r), _where(t >= 0, e * r, r), e * r * r


# ---- to be compiled: the limits are chosen by the bits, because compilers take liberties with infinity and NaN


def npu_shim_gelu(x: Any) -> Any:
    """gelu(x); the name is that of the graph's function."""
    v = _wide(x)
    s, _, _ = _gate(v)
    above, beyond, is_nan = _ends(v)
    return tf.cast(_where(beyond, _where(tf.logical_or(above, is_nan), v, tf.zeros_like(v)), v * s), x.dtype)


def npu_shim_gelu_gradient(x: Any, dy: Any) -> Any:
    """dy gelu'(x)."""
    v = _wide(x)
    s, _, spread = _gate(v)
    slope = s + v * (3.0 * _2AB * tf.square(v) + _2A) * spread
    above, beyond, is_nan = _ends(v)
    end = _where(is_nan, v, _where(above, tf.ones_like(v), tf.zeros_like(v)))
    return tf.cast(_wide(dy) * _where(beyond, end, slope), x.dtype)


_COMPILED_VALUE, _COMPILED_SLOPE = _xla.Compiled(npu_shim_gelu), _xla.Compiled(npu_shim_gelu_gradient)


def _ends(v: Any) -> Tuple[Any, Any, Any]:
    """Whether each float32 is not negative, beyond the limits or NaN, and NaN, from its bits."""
    bits = tf.bitcast(v, tf.int32)
    size = tf.bitwise.bitwise_and(bits, 0x7FFFFFFF)
    return bits >= 0, size > int(np.float32(_LIMITS["float32"]).view(np.int32)), size > 0x7F800000


def _wide(x: Any) -> Any:
    """Half types have too few digits to compute in."""
    return tf.cast(x, tf.float32) if x.dtype.name not in _LIMITS else x
