"""Centralization of gradients.

Source: Yong et al., "Gradient Centralization", arXiv:2004.01461.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor


def centralization(x: Tensor, axes: Sequence[int], name: str | None = None) -> Tensor:
    """Return x minus its mean over the axes. The gradient is dy minus its mean over the axes.

    Args:
        x: float16 or float32 tensor.
        axes: list of ints.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "centralization"):
        return x - tf.reduce_mean(x, list(axes), keepdims=True)
