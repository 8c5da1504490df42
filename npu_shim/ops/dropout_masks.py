"""Dropout in two operators, as the NPU has it: one makes a mask, the other applies it.

y = x / keep_prob where the mask is set, else 0.  The gradient is the same mask on dy.
"""

from __future__ import annotations

from typing import Callable

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Tensor, TensorShape

_ALIGNED = 128  # bits: masks of drop_out_gen_mask fill whole blocks


def drop_out_gen_mask(shape: Tensor, prob: Tensor, seed: int = 0, seed2: int = 0, name: str | None = None) -> Tensor:
    """Return a random mask of bits, each set with probability prob.

    Args:
        shape: int vector, the shape of the tensor to which the mask is applied, of n elements.
        prob: scalar, the probability to KEEP an element.
        seed: seed of the graph.
        seed2: seed of the op; both 0 for a random mask.
        name: name of the ops.
    Returns:
        uint8 [16 ceil(n / 128)]; bit k of byte i is element 8 i + k.
    """
    with tf.name_scope(name or "drop_out_gen_mask"):
        count = tf.reduce_prod(tf.cast(shape, tf.int32))
        blocks = (count + _ALIGNED - 1) // _ALIGNED
        bits = tf.reshape(_draw_kept([blocks * _ALIGNED], prob, seed, seed2), [-1, 8])
        return tf.cast(tf.reduce_sum(tf.cast(bits, tf.int32) * _bit_weights(), 1), tf.uint8)


def drop_out_do_mask(x: Tensor, mask: Tensor, keep_prob: Tensor, name: str | None = None) -> Tensor:
    """Apply a mask of drop_out_gen_mask.

    Args:
        x: float16 or float32, of any shape.
        mask: uint8, from drop_out_gen_mask with x's shape.
        keep_prob: scalar, that of the mask.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """

    def bits(mask: Tensor, x: Tensor) -> Tensor:
        unpacked = tf.bitwise.bitwise_and(tf.expand_dims(tf.cast(mask, tf.int32), 1), _bit_weights()) > 0
        return tf.reshape(tf.reshape(unpacked, [-1])[: tf.size(x)], tf.shape(x))

    with tf.name_scope(name or "drop_out_do_mask"):
        return _apply_mask(x, mask, keep_prob, bits)


def drop_out_gen_mask_v3(shape: Tensor, prob: Tensor, seed: int = 0, seed2: int = 0, name: str | None = None) -> Tensor:
    """Return a random mask of bytes, each 1 with probability prob, else 0. Arguments as for drop_out_gen_mask.

    Returns:
        uint8 of the given shape. On the NPU the layout differs if the last two sizes are multiples of 16.
    """
    with tf.name_scope(name or "drop_out_gen_mask_v3"):
        return tf.cast(_draw_kept(shape, prob, seed, seed2), tf.uint8)


def drop_out_do_mask_v3(x: Tensor, mask: Tensor, keep_prob: Tensor, name: str | None = None) -> Tensor:
    """Apply a mask of drop_out_gen_mask_v3 or drop_out_gen_mask_v4. Arguments as for drop_out_do_mask."""
    with tf.name_scope(name or "drop_out_do_mask_v3"):
        return _apply_mask(x, mask, keep_prob, lambda mask, x: tf.cast(mask, tf.bool))


def drop_out_gen_mask_v4(
    shape: Tensor,
    prob: Tensor,
    seed: int = 0,
    seed2: int = 0,
    dtype: DType = tf.bool,
    name: str | None = None,
) -> Tensor:
    """Return a random mask of bytes, as drop_out_gen_mask_v3; dtype is tf.bool."""
    return drop_out_gen_mask_v3(shape, prob, seed, seed2, name)


def _draw_kept(shape: TensorShape, prob: Tensor, seed: int, seed2: int) -> Tensor:
    """Return True for each element that is kept. The seeds are those of TensorFlow's op, so its rules apply to them."""
    uniform = tf.raw_ops.RandomUniform(shape=tf.cast(shape, tf.int32), dtype=tf.float32, seed=seed, seed2=seed2)
    return uniform < tf.cast(prob, tf.float32)


def _bit_weights() -> Tensor:
    return tf.constant([1, 2, 4, 8, 16, 32, 64, 128], tf.int32)


def _apply_mask(x: Tensor, mask: Tensor, keep_prob: Tensor, bits: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    x = tf.convert_to_tensor(x)
    scaled = x / tf.cast(keep_prob, x.dtype)
    return tf.compat.v2.where(bits(mask, x), scaled, tf.zeros_like(scaled))
