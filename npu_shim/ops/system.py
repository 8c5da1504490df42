"""Ops that start and stop the NPU. On the CPU they do nothing."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Operation


def initialize_system(name: str | None = None) -> Operation:
    """Return the op that starts the device and the collectives; run it before HCCL's functions are used.

    On the NPU it is the vendor's op; on the CPU it does nothing. It raises RuntimeError in eager mode.
    """
    return _system_op("initialize_system", name)


def shutdown_system(name: str | None = None) -> Operation:
    """Return the op that stops what initialize_system started; run it before the session is closed.

    On the NPU it is the vendor's op; on the CPU it does nothing. It raises RuntimeError in eager mode.
    """
    return _system_op("shutdown_system", name)


def NPUInit(name: str | None = None) -> Operation:
    """Return an op like initialize_system."""
    return _system_op("NPUInit", name)


def NPUShutdown(name: str | None = None) -> Operation:
    """Return an op like shutdown_system."""
    return _system_op("NPUShutdown", name)


def _system_op(function: str, name: str | None) -> Operation:
    if tf_api.tf.executing_eagerly():
        raise RuntimeError(
            f"npu_ops.{function} works in graph mode only. Call tf.compat.v1.disable_eager_execution() at the start of "
            "the script."
        )
    if host_device.is_npu():
        return getattr(host_device.import_vendor_module("npu_bridge.estimator.npu_ops"), function)(name)
    return tf_api.tf.no_op(name=name or function)
