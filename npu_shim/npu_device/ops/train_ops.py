"""The fast gelu of the NPU."""

from __future__ import annotations

import math

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Tensor
from npu_shim.npu_device import gen_npu_ops
from npu_shim.npu_device.utils import npu_wrapper


def fast_gelu_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    """Return the gradient of an op FastGelu, from the gradient of its result."""
    return [gen_npu_ops.fast_gelu_grad(grad, op.inputs[0])]


def gelu(x: Tensor) -> Tensor:
    """Return the Gaussian error linear unit: as the NPU computes it in functions, exact in eager code.

        in tf.function and Keras models   x / (1 + exp(-1.702 x))
        in eager code                     0.5 x (1 + erf(x / sqrt(2)))

    The two differ by up to 0.02.

    Args:
        x: tensor of any shape, or the output of a Keras layer; float16 or float32.
    Returns:
        A tensor with x's shape and type.
    """
    if tf_keras.is_keras_tensor(x):
        return npu_wrapper.NpuOpLambda(gen_npu_ops.fast_gelu)(x)
    if not tf.executing_eagerly():
        return gen_npu_ops.fast_gelu(x)
    x = tf.convert_to_tensor(x)
    return 0.5 * x * (1 + tf.math.erf(x * math.sqrt(0.5)))


host_device.copy_vendor_names(__name__)
