"""Gradients of one's own, and factors of tensors."""

from __future__ import annotations

from typing import Callable

from npu_shim._tensorflow import tf_gradients
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Tensor

_registered: set[str] = set()


def scale_tensor(tensor: Tensor, factor: float, ranks: int = 1) -> Tensor:
    """Return tensor * factor / ranks: integers as float64, half precision as float32, as Horovod computes it.

    Horovod multiplies with the reciprocal of the ranks, so 49 ranks average the integer 1 to 0. A quotient does not.
    """
    dtype: DType = tensor.dtype.base_dtype
    if dtype.is_integer and factor == 1.0:
        return tensor if ranks == 1 else tf.cast(tf.truncatediv(tf.cast(tensor, tf.int64), ranks), dtype)
    wide = tf.float64 if dtype.is_integer else tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype
    result = tensor
    if factor != 1.0:
        result = tf.cast(result, wide) * tf.constant(factor, wide)
    if ranks != 1:
        result = tf.cast(result, wide) / tf.constant(ranks, wide)
    return tf.cast(result, dtype)


def scale_gradient(tensor: Tensor, factor: float) -> Tensor:
    """Return the tensor; the gradient that reaches it is multiplied by a factor."""
    if factor == 1.0 or not tensor.dtype.is_floating:
        return tensor
    return replace_gradient(tf.identity(tensor), tensor, lambda dy: scale_tensor(dy, factor), f"times {factor!r}")


def replace_gradient(y: Tensor, x: Tensor, backward: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """Return y with a gradient with respect to x, instead of those of the ops that made it.

    Args:
        y: the result.
        x: the tensor that it depends on.
        backward: returns the gradient of x for that of y. It uses no tensor but that one.
        name: the same for the same backward.
    """
    if tf.executing_eagerly():

        @tf.custom_gradient
        def replaced(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
            return tf.identity(y), backward

        return replaced(x)
    full_name = f"NpuShim Horovod {name}"
    if full_name not in _registered:
        tf.RegisterGradient(full_name)(tf_gradients.make_registrable_gradient(lambda x, dy: [backward(dy)]))
        _registered.add(full_name)
    return tf_gradients.with_registered_gradient(y, [x], full_name)
