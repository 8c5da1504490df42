"""Overflow flags. On the NPU a register notes overflows; on the CPU the flag tells if tensors are finite.

The tensors are the control inputs of the operator, as scripts write it for the NPU::

    with tf.control_dependencies(gradients):
        status = gen_npu_ops.npu_get_float_status(gen_npu_ops.npu_alloc_float_status())
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Tensor

_SIZE = 8


def npu_alloc_float_status(name: str | None = None) -> Tensor:
    """Return float32 [8] of zeros."""
    with tf.name_scope(name or "npu_alloc_float_status"):
        return tf.zeros([_SIZE])


def npu_get_float_status(input_float: Tensor, name: str | None = None) -> Tensor:
    """Return float32 [8]: zeros if the control inputs are finite, else ones.

    Args:
        input_float: float32 [8], from npu_alloc_float_status.
        name: name of the ops.
    Raises:
        ValueError: in eager code, or without control inputs.
    """
    with tf.name_scope(name or "npu_get_float_status"):
        status = 1 - tf.cast(_status_of_ops_before("npu_get_float_status"), tf.float32)
        return tf.fill([_SIZE], status) + 0 * tf.convert_to_tensor(input_float)


def npu_clear_float_status(float_status: Tensor, name: str | None = None) -> Tensor:
    """Return float32 [8]: zeros after finite tensors, else NaN.

    Scripts compare it with the result of npu_alloc_float_status or npu_get_float_status: equal means finite.

    Args:
        float_status: float32 [8], from npu_get_float_status.
        name: name of the ops.
    """
    with tf.name_scope(name or "npu_clear_float_status"):
        status = tf.convert_to_tensor(float_status)
        return tf.compat.v2.where(tf.equal(status, 0), tf.zeros_like(status), tf.fill([_SIZE], float("nan")))


def npu_get_float_status_v2(name: str | None = None) -> Tensor:
    """Return int32 [8]: zeros if the control inputs are finite, else ones.

    Raises:
        ValueError: in eager code, or without control inputs.
    """
    with tf.name_scope(name or "npu_get_float_status_v2"):
        return tf.fill([_SIZE], 1 - tf.cast(_status_of_ops_before("npu_get_float_status_v2"), tf.int32))


def npu_clear_float_status_v2(name: str | None = None) -> Operation | None:
    """Do nothing: the CPU has no register to clear. Return the op; None in eager code."""
    return None if tf.executing_eagerly() else tf.no_op(name=name or "npu_clear_float_status_v2")


def _status_of_ops_before(operator: str) -> Tensor:
    before = [] if tf.executing_eagerly() else tf.no_op().control_inputs
    tensors = [tensor for op in before for tensor in op.outputs if tensor.dtype.is_floating]
    if not tensors:
        raise ValueError(
            f"{operator} has no tensors to check: the CPU has no overflow flag. Call it in a graph, inside "
            "tf.control_dependencies(gradients)."
        )
    return tf.reduce_all(tf.stack([tf.reduce_all(tf.math.is_finite(tensor)) for tensor in tensors]))
