"""Gradients of a function of tensors, in graphs and in eager code."""

from __future__ import annotations

from typing import Callable, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor


def gradients_of(function: Callable[..., Tensor], inputs: Sequence[Tensor], dy: Tensor) -> list[Tensor]:
    """Return the gradients of the inputs of a function.

    Args:
        function: a function of the inputs that returns y.
        inputs: float tensors.
        dy: the gradient of y.
    Returns:
        A tensor for each input, of its shape and type.
    """
    tensors = [tf.convert_to_tensor(tensor) for tensor in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return [tf.convert_to_tensor(tensor) for tensor in tape.gradient(y, tensors, dy)]
