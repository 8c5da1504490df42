"""The NPU's overflow flag, for loss scaling in graph mode of TensorFlow 2, which the vendor's package lacks."""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Gradient, Tensor

tf = tf_api.tf


def read_and_clear_overflow_flag(after_gradients: Sequence[Gradient], of_all_ranks: bool) -> Tensor | None:
    """Return True in a tensor if nothing overflowed until the gradients were there, and clear the flag.

    The ops and their order are those of the vendor's NPULossScaleOptimizer for TensorFlow 1.

    Args:
        after_gradients: tensors or tf.IndexedSlices; None is left out.
        of_all_ranks: also ask the flags of the other ranks.
    Returns:
        A bool scalar tensor named overflow_status_reduce_all. None if the gradients themselves tell it: on the CPU, and
        on an NPU whose overflows become infinity and NaN.
    """
    plugin = host_device.find_vendor_module("npu_bridge.estimator.npu.npu_plugin")
    if plugin is None or plugin.is_inf_nan_enabled():
        return None
    ops = host_device.import_vendor_module("npu_bridge.helper.helper").get_gen_ops()
    given = [gradient for gradient in after_gradients if gradient is not None]
    with tf.control_dependencies(given):
        status = ops.npu_get_float_status_v2()
    with tf.control_dependencies([status]):
        cleared = ops.npu_clear_float_status_v2()
    if of_all_ranks:
        status = host_device.import_vendor_module("npu_bridge.hccl.hccl_ops").allreduce(status, "sum", fusion=0)
    with tf.control_dependencies([cleared]):
        return tf.reduce_all(tf.equal(status, 0), name="overflow_status_reduce_all")
