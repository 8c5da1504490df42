"""tf.nn.dropout of functions as the NPU's dropout."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow import patches
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Tensor
from npu_shim.npu_device import gen_npu_ops
from npu_shim.npu_device.train.replacement import dropout_convert
from npu_shim.ops.dropout import dropout

_VERSIONS, _MODES = ["2.6.2~2.6.999"], ["graph"]
grad_registry_list = ["DropOutDoMask"]  # the ops whose gradient the package registers


def npu_dropout_v2(
    x: Tensor,
    rate: float | Tensor,
    noise_shape: Tensor | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Drop each element with probability rate, and divide the others by 1 - rate, in tf.function.

    Args:
        x: float tensor of any shape.
        rate: the probability to DROP an element, a number in [0, 1) or a scalar tensor.
        noise_shape: int32 vector; with it, and for rate 0, TensorFlow's own dropout is used.
        seed: int, the op's seed.
        name: name of the op.
    Returns:
        A tensor with x's shape and type.
    Raises:
        RuntimeError: in eager code.
        ValueError: x is not a float tensor, or rate is not allowed.
    """
    original = getattr(npu_dropout_v2, "__OriginCall__", None)
    # TensorFlow takes a seed for rate 0 too, and so the ops behind it have the seeds that they have without the NPU.
    if original is not None and (noise_shape is not None or isinstance(rate, (int, float)) and rate == 0):
        return original(x, noise_shape=noise_shape, seed=seed, name=name, rate=rate)
    return dropout(x, 1 - rate, noise_shape=noise_shape, seed=seed, name=name)


def dropout_api_convert() -> None:
    """Replace tf.nn.dropout by npu_dropout_v2 in functions, with TensorFlow 2.6; npu_shim.uninstall() restores it."""
    for namespace in (tf.nn, tf.compat.v2.nn):
        patches.replace_attribute(namespace, "dropout", dropout_convert(npu_dropout_v2, version=_VERSIONS, mode=_MODES))


def dropout_domask_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    """Return the gradients of an op DropOutDoMask, from the gradient of its result."""
    return [gen_npu_ops.drop_out_do_mask(grad, op.inputs[1], op.inputs[2]), None, None]


host_device.copy_vendor_names(__name__)
