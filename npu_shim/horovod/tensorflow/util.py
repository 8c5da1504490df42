"""The mode in which TensorFlow runs."""

from __future__ import annotations

from npu_shim._tf import tf


def _executing_eagerly() -> bool:
    """Return True outside graphs and functions."""
    return tf.executing_eagerly()
