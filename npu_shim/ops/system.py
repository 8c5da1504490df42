"""Starting and stopping the device. On the CPU there is nothing to start: each is an op that does nothing."""

from __future__ import annotations

from typing import Any

from npu_shim import _device, _tf


def initialize_system(name: str | None = None) -> Any:
    """The op that starts the device and the collectives; run it before HCCL's functions are used.

    On the card the vendor's op; on the CPU an op that does nothing.

    Args:
        name: of the op.
    Returns:
        An Operation.
    Raises:
        RuntimeError: executing eagerly.
    """
    return _op("initialize_system", name)


def shutdown_system(name: str | None = None) -> Any:
    """The op that stops what initialize_system started; run it before the session is closed.

    On the card the vendor's op; on the CPU an op that does nothing.

    Args:
        name: of the op.
    Returns:
        An Operation.
    Raises:
        RuntimeError: executing eagerly.
    """
    return _op("shutdown_system", name)


def NPUInit(name: str | None = None) -> Any:
    """The same as initialize_system."""
    return _op("NPUInit", name)


def NPUShutdown(name: str | None = None) -> Any:
    """The same as shutdown_system."""
    return _op("NPUShutdown", name)


def _op(which: str, name: str | None) -> Any:
    if _tf.tf.executing_eagerly():
        raise RuntimeError(
            f"npu_ops.{which} works in graph mode: call tf.compat.v1.disable_eager_execution() at the start of the script."
        )
    if _device.device().is_npu:
        return getattr(_device.vendor("npu_bridge.estimator.npu_ops"), which)(name)
    return _tf.tf.no_op(name=name or which)
