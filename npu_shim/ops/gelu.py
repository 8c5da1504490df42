"""Gelu in the tanh form, as on the NPU, with its analytic gradient.

    gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x s(t)
    t       = x (2a + 2ab x^2),  a = sqrt(2/pi),  b = 0.044715,  s(t) = 1 / (1 + e),  e = exp(-t)

With t' = 2a + 6ab x^2 the derivatives are

    gelu'(x)  = s + x t' s (1-s)
    gelu''(x) = s (1-s) (2 t' + x ((1-2s) t'^2 + t''))

If |t| is so large that s is 0 or 1 in the type's precision, the result is the
limit: gelu is 0 or x, its gradient 0 or 1, also at infinity. NaN stays NaN. The
error of value and gradient is at most two units in the last place of
max(1, |result|). Therefore s is computed with exp: tanh(t/2) and sigmoid(t) are
wrong by several units in some TensorFlow versions.

    TensorFlow's ops    s = 1 / (1 + e), 1 - s = e s. The op for reciprocals is not exact in TensorFlow 2.15 and 2.21,
                        and for a quotient of two tensors TensorFlow starts threads at fewer elements.
    compiled            the same, with an exp written out for the range that is needed. It also keeps the digits of
                        gelu(x) for negative x.

Source: Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415.
"""

from __future__ import annotations

import math
from typing import Callable

import numpy as np

from npu_shim._tensorflow import tf_api, tf_gradients
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops import xla

tf = tf_api.tf
_where = tf.compat.v2.where  # tf.where of TensorFlow 1 logs a deprecation

_2A = 2 * math.sqrt(2 / math.pi)
_2AB = _2A * 0.044715
_LIMITS = {"float32": 10.0, "float64": 20.9}  # beyond which |x| s(t) (1 - s(t)) is 0 in the type's precision
_EXP_LIMIT = 9.5  # likewise; up to here 1 / (1 + e) does not overflow in Newton's method
LEAST_ELEMENTS = 80_000  # compiled from this size; smaller tensors take less time than the launch
_EXP2 = (1.0, 0.693146978, 0.240222421, 0.0555073374, 0.00967151266, 0.00132647269)  # 2^f for |f| <= 1/2, to 9.1e-08


def gelu(features: Tensor, name: str | None = None) -> Tensor:
    """Return the Gaussian error linear unit in tanh form.

        gelu(x) = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))

    On the NPU it is the vendor's op. On the CPU it is one compiled function for
    large tensors and TensorFlow's ops for small tensors (see npu_shim/ops/xla.py).
    The gradient is analytic, and so is the second gradient; both also hold
    inside loops, branches and functions. For the gradient a large tensor keeps
    x, a small one x and gelu'(x). A tensor of dynamic shape inside a loop,
    branch or function keeps x. float16 and bfloat16 are computed in float32 and
    rounded once.

    Args:
        features: tensor x of any shape; float16, bfloat16, float32 or float64.
        name: name of the op.
    Returns:
        A tensor with x's shape and type.
    Raises:
        ValueError: if x is not a float tensor.
    """
    x = tf.convert_to_tensor(features, name="features")
    if not x.dtype.is_floating:
        raise ValueError(f"features={x!r} is {x.dtype.name}, but must be a float tensor: write tf.cast(x, tf.float32).")
    with tf.name_scope(name or "gelu"):
        if tf.executing_eagerly():
            return _eager_gelu(x)
        if _is_small(x):
            y, slope = _value_and_slope(x)
        elif x.dtype != tf.float64 and xla.can_switch_by_size(x):
            y, slope = xla.switch_by_size(_value_of_large, [x], _value_and_slope, LEAST_ELEMENTS)
        else:
            return tf_gradients.with_registered_gradient(_gelu_value(x), [x], "NpuShimGelu")
        return tf_gradients.with_registered_gradient(y, [x, slope], "NpuShimGeluWithSlope")


def gelu_grad(gradients: Tensor, features: Tensor, activations: Tensor, name: str | None = None) -> Tensor:
    """Return the gradient of gelu, dy gelu'(x).

    Args:
        gradients: dy, of the shape of x.
        features: x, a float tensor of any shape.
        activations: gelu(x); not used.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """
    with tf.name_scope(name or "gelu_grad"):
        return _multiply_slope(
            _value_and_slope_function(tf.convert_to_tensor(features))[1](), tf.convert_to_tensor(gradients)
        )


def _is_small(x: Tensor) -> bool:
    count = x.shape.num_elements()
    return count is not None and count < LEAST_ELEMENTS


@tf.RegisterGradient("NpuShimGeluWithSlope")
@tf_gradients.make_registrable_gradient
def _gradient_by_slope(x: Tensor, slope: Tensor, dy: Tensor) -> list[Tensor | None]:
    if _is_small(x):
        dx = _multiply_slope(slope, dy)
    elif xla.can_switch_by_size(x):
        dx = xla.switch_by_size(
            lambda x, dy, _: _COMPILED_SLOPE.call_any_size(x, dy),
            [x, dy, slope],
            lambda _, dy, slope: _multiply_slope(slope, dy),
            LEAST_ELEMENTS,
        )
        dx.set_shape(x.shape)
    else:  # the gradient is in another graph or in control flow, and slope may be that of a large tensor
        dx = _slope_times_dy(x, dy)
    return [tf_gradients.with_registered_gradient(dx, [x, dy], "NpuShimGeluGrad"), None]


@tf.RegisterGradient("NpuShimGelu")
@tf_gradients.make_registrable_gradient
def _gelu_gradient(x: Tensor, dy: Tensor) -> list[Tensor | None]:
    return [tf_gradients.with_registered_gradient(_slope_times_dy(x, dy), [x, dy], "NpuShimGeluGrad")]


@tf.RegisterGradient("NpuShimGeluGrad")
@tf_gradients.make_registrable_gradient
def _gelu_second_gradient(x: Tensor, dy: Tensor, ddx: Tensor) -> list[Tensor | None]:
    return [_second_gradient(x, dy, ddx), _slope_times_dy(x, ddx)]


@tf.custom_gradient
def _eager_gelu(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    return _gelu_value(x), lambda dy: _slope_times_dy(x, dy)


def _gelu_value(x: Tensor) -> Tensor:
    """Return gelu(x), in the form that suits the number of elements."""
    if x.dtype == tf.float64:
        return _value_and_slope_function(x)[0]
    return xla.call_elementwise(_COMPILED_VALUE, [x], lambda x: _value_and_slope_function(x)[0], LEAST_ELEMENTS)


def _slope_times_dy(x: Tensor, dy: Tensor) -> Tensor:
    """Return dy gelu'(x), likewise."""

    def small(x: Tensor, dy: Tensor) -> Tensor:
        return _multiply_slope(_value_and_slope_function(x)[1](), dy)

    if x.dtype == tf.float64:
        return small(x, dy)
    return xla.call_elementwise(_COMPILED_SLOPE, [x, dy], small, LEAST_ELEMENTS)


# ---- in TensorFlow's ops, as few as possible. If s is 0 or 1, multiply_no_nan returns the limit; s has the NaNs of x.


def _value_and_slope_function(x: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
    """Return gelu(x), and a function that returns gelu'(x) in the dtype of the computation."""
    v = _cast_to_compute_dtype(x)
    u = tf.square(v)
    e = tf.exp(v * (-_2AB * u - _2A))
    s = 1.0 / (1.0 + e)
    y = tf.math.multiply_no_nan(v, s)

    def slope() -> Tensor:  # one op after the other: a second thread takes longer to wake up
        with tf.control_dependencies([y]):
            rest = tf.math.multiply_no_nan(e, s)
        spread = tf.math.multiply_no_nan(y, rest)
        with tf.control_dependencies([spread]):
            rise = 3.0 * _2AB * u + _2A  # t'
        return s + tf.math.multiply_no_nan(rise, spread)

    return tf.cast(y, x.dtype), slope


def _value_and_slope(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return gelu(x) and gelu'(x); TensorFlow prunes the ops of gelu'(x) if no gradient needs them."""
    y, slope = _value_and_slope_function(x)
    return y, slope()


def _value_of_large(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return gelu(x), and an empty tensor for the gradient."""
    return _COMPILED_VALUE.call_any_size(x), _cast_to_compute_dtype(tf.reshape(x, [-1])[:0])


def _multiply_slope(slope: Tensor, dy: Tensor) -> Tensor:
    return tf.cast(_cast_to_compute_dtype(dy) * slope, dy.dtype)


def _second_gradient(x: Tensor, dy: Tensor, ddx: Tensor) -> Tensor:
    v = _cast_to_compute_dtype(x)
    s, rest, spread = _sigmoid_terms(v)
    d1, d2 = 3.0 * _2AB * tf.square(v) + _2A, 6.0 * _2AB * v
    bend = spread * (2.0 * d1 + v * ((rest - s) * tf.square(d1) + d2))
    bend = _where(tf.abs(v) > _LIMITS[v.dtype.name], tf.zeros_like(v), bend)
    return tf.cast(_cast_to_compute_dtype(dy) * _cast_to_compute_dtype(ddx) * bend, x.dtype)


def _sigmoid_terms(v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return s, 1 - s and s (1 - s), each to full relative precision and without overflow."""
    t = v * (_2AB * tf.square(v) + _2A)
    e = tf.exp(-tf.abs(t))
    r = 1.0 / (1.0 + e)
    return _where(t >= 0, r, e * r), _where(t >= 0, e * r, r), e * r * r


# ---- compiled: the limits are selected by the bits, because compilers do not respect infinity and NaN


def npu_shim_gelu(x: Tensor) -> Tensor:
    """Return gelu(x); the name is that of the graph's function."""
    v = _cast_to_compute_dtype(x)
    inside, is_high, is_nan = _range_masks(v)
    c = _where(inside, v, tf.zeros_like(v))
    end = _where(tf.logical_or(is_high, is_nan), v, tf.zeros_like(v))
    return tf.cast(_where(inside, c / (1.0 + _exp_of_minus_t(c)), end), x.dtype)


def npu_shim_gelu_gradient(x: Tensor, dy: Tensor) -> Tensor:
    """Return dy gelu'(x)."""
    v = _cast_to_compute_dtype(x)
    inside, is_high, is_nan = _range_masks(v)
    c = _where(inside, v, tf.zeros_like(v))
    e = _exp_of_minus_t(c)
    s = 1.0 / (1.0 + e)
    slope = s + c * (3.0 * _2AB * tf.square(c) + _2A) * (s * (s * e))
    end = _where(is_nan, v, tf.cast(is_high, tf.float32))
    return tf.cast(_cast_to_compute_dtype(dy) * _where(inside, slope, end), x.dtype)


_COMPILED_VALUE, _COMPILED_SLOPE = xla.Compiled(npu_shim_gelu), xla.Compiled(npu_shim_gelu_gradient)


def _range_masks(v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return three bool tensors for float32 v, from its bits: within the limit of exp, not negative, NaN."""
    bits = tf.bitcast(v, tf.int32)
    size = tf.bitwise.bitwise_and(bits, 0x7FFFFFFF)
    return size <= int(np.float32(_EXP_LIMIT).view(np.int32)), bits >= 0, size > 0x7F800000


def _exp_of_minus_t(c: Tensor) -> Tensor:
    """Return exp(-t) of float32 within the limit as 2^k 2^f, k the nearest integer; half the cost of a general exp."""
    power = c * (-_2AB * math.log2(math.e) * tf.square(c) - _2A * math.log2(math.e))
    bits = tf.bitcast(power + 1.5 * 2.0**23, tf.int32)  # its last bits are k: such a large float has no fraction
    f = power - tf.cast(bits - int(np.float32(1.5 * 2.0**23).view(np.int32)), tf.float32)
    y = tf.fill(tf.shape(f), np.float32(_EXP2[-1]))
    for coefficient in _EXP2[-2::-1]:
        y = y * f + np.float32(coefficient)
    return tf.bitcast(tf.bitcast(y, tf.int32) + tf.bitwise.left_shift(bits, 23), tf.float32)


def _cast_to_compute_dtype(x: Tensor) -> Tensor:
    """Return x in the dtype of the computation: half types in float32."""
    return tf.cast(x, tf.float32) if x.dtype.name not in _LIMITS else x
