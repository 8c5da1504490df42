"""Operators of the vendor's library that start, stop and mark the NPU, or read shapes, images and files."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Operation, Tensor
from npu_shim.ops import library


def npu_init(name: str | None = None) -> Operation | None:
    """Start the device. Return the op; None in eager code. It does nothing on the CPU."""
    return _no_op(name or "npu_init")


def npu_shutdown(name: str | None = None) -> Operation | None:
    """Stop the device. Return the op; None in eager code. It does nothing on the CPU."""
    return _no_op(name or "npu_shutdown")


def log_time_stamp(logid: str, notify: bool, name: str | None = None) -> Operation | None:
    """Mark a point in the NPU's profile. Return the op; None in eager code. The CPU has no such profile.

    Args:
        logid: the number of the mark, as a string.
        notify: True to notify the host; it has no effect.
        name: name of the op.
    """
    return _no_op(name or "log_time_stamp")


def file_constant(
    shape: Sequence[int], dtype: DType, file_path: str = "", file_id: str = "", name: str | None = None
) -> Tensor:
    """Return a constant whose bytes are in a file. Arguments, result and errors as for library.file_constant."""
    return library.file_constant(shape, dtype, file_path, file_id, name)


def get_shape(x: Sequence[Tensor] | Tensor, N: int = 1, name: str | None = None) -> Tensor:
    """Return the shapes of tensors, one after the other. See library.get_shape; N has no effect."""
    return library.get_shape(x, name)


def _no_op(name: str) -> Operation | None:
    return None if tf.executing_eagerly() else tf.no_op(name=name)
