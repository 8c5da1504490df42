"""Dropout with the vendor's arguments: ``keep_prob`` is the probability to KEEP an element."""
from __future__ import annotations

import numbers
from typing import Any, Optional

from npu_shim import _device, _tf

tf = _tf.tf


def dropout(x: Any, keep_prob: Any, noise_shape: Any = None, seed: Optional[int] = None,
            name: Optional[str] = None) -> Any:
    """Keeps each element with probability keep_prob, scaled by 1 / keep_prob; the rest becomes zero.

        y[i] = x[i] / keep_prob   with probability keep_prob, else 0
        dx[i] = dy[i] / keep_prob where x[i] was kept, else 0

    On the card it is the vendor's op. On the CPU it is ``tf.nn.dropout`` with
    ``rate = 1 - keep_prob``: with the same seeds it drops the same elements as
    the script did before it was migrated. The card's random numbers differ.

    Args:
        x: float tensor of any shape (float16 or float32 on the card).
        keep_prob: a number in (0, 1], or a scalar float tensor.
        noise_shape: int32 vector, broadcast to x's shape: which elements share their fate.
        seed: int, the op's seed; with tf.compat.v1.set_random_seed it makes runs repeat.
        name: of the op.
    Returns:
        A tensor with x's shape and type; x itself when keep_prob is the number 1.
    Raises:
        RuntimeError: executing eagerly.
        ValueError: x is no float tensor, keep_prob is a number outside (0, 1] or a
            tensor that is no scalar.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "npu_ops.dropout works in graph mode: call tf.compat.v1.disable_eager_execution() at the start of the "
            "script, or call it inside a tf.function."
        )
    if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1:
        raise ValueError(
            f"keep_prob={keep_prob!r} is not allowed: it is the probability to keep an element, a number greater "
            "than 0 and at most 1. For a dropout rate write keep_prob=1 - rate."
        )
    x = tf.convert_to_tensor(x, name="x")
    if not x.dtype.is_floating:
        raise ValueError(f"x={x!r} is {x.dtype.name}, but must be a float tensor: write tf.cast(x, tf.float32).")
    if isinstance(keep_prob, numbers.Real) and keep_prob == 1:
        return x
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu_ops").dropout(x, keep_prob, noise_shape, seed, name)
    return _tf.v1.nn.dropout(x, rate=1 - _scalar(keep_prob, x.dtype), noise_shape=noise_shape, seed=seed, name=name)


def _scalar(keep_prob: Any, dtype: Any) -> Any:
    if isinstance(keep_prob, numbers.Real):
        return keep_prob
    keep_prob = tf.convert_to_tensor(keep_prob, name="keep_prob")
    if not keep_prob.shape.is_compatible_with([]):
        raise ValueError(f"keep_prob={keep_prob!r} has shape {keep_prob.shape}, but must be a scalar.")
    return tf.cast(keep_prob, dtype)
