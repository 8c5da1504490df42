"""The mode in which TensorFlow runs."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf


def _executing_eagerly() -> bool:
    """Return True outside graphs and functions."""
    return tf.executing_eagerly()
