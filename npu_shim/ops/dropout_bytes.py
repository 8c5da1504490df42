"""Dropout whose mask has a byte for each element: dropout_v3 and dropout_v4. They also work in eager code."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import DType, Tensor, TensorShape
from npu_shim.ops import dropout_masks
from npu_shim.ops.dropout import checked_input, dropout

tf = tf_api.tf


def dropout_v3(
    x: Tensor, keep_prob: float | Tensor, noise_shape: TensorShape | None = None, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Keep each element with probability keep_prob, scaled by 1 / keep_prob; others become zero.

    In graphs it computes what npu_ops.dropout does. In eager code the mask has TensorFlow's random numbers. The
    gradient is the same mask on dy.

    Args:
        x: float tensor of any shape.
        keep_prob: a number in (0, 1], or a scalar float tensor.
        noise_shape: the shape of the mask before it is broadcast to x's shape; None in a list is the size of x.
        seed: int, the op's seed.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type; x itself if keep_prob is 1.0.
    Raises:
        ValueError: x is not a float tensor, or keep_prob is a number outside (0, 1].
    Source:
        Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR 15, 2014.
    """
    x = checked_input(x, keep_prob)
    if isinstance(noise_shape, (list, tuple)) and None in noise_shape:
        noise_shape = [tf.shape(x)[axis] if size is None else size for axis, size in enumerate(noise_shape)]
    if not tf.executing_eagerly():
        return dropout(x, keep_prob, noise_shape, seed, name)
    if isinstance(keep_prob, float) and keep_prob == 1.0:
        return x
    seed1, seed2 = tf_api.v1.get_seed(seed)
    shape = tf.shape(x) if noise_shape is None else noise_shape
    mask = dropout_masks.drop_out_gen_mask_v3(shape, keep_prob, seed1 or 0, seed2 or 0)
    return dropout_masks.drop_out_do_mask_v3(x, mask, keep_prob, name)


def dropout_v4(
    x: Tensor,
    keep_prob: float | Tensor,
    noise_shape: TensorShape | None = None,
    seed: int | None = None,
    output_dtype: DType = tf.bool,
    name: str | None = None,
) -> Tensor:
    """Keep each element with probability keep_prob. As dropout_v3; output_dtype, the mask's type, must be tf.bool."""
    if tf.as_dtype(output_dtype) != tf.bool:
        raise ValueError(f"dropout_v4: output_dtype={output_dtype!r} is not allowed. It must be tf.bool.")
    return dropout_v3(x, keep_prob, noise_shape, seed, name)
