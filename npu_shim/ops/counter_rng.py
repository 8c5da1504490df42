"""Counter-based random bits: a hash of (key, position), so that a mask is recomputed instead of stored.

    h = position * c0 + k1;  h ^= h >> 16;  h *= c1;  h ^= h >> 15;  h += k2;  h *= c2;  h ^= h >> 16   (mod 2^32)

k1 and k2 are hashes of the two words of the key. For one key, the positions 0 to
2^32 - 1 have different bits: each step is a bijection.
"""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Tensor

tf = tf_api.tf


def new_random_key(seed: int | None) -> Tensor:
    """Return a random key, int32 [2], new in each run of the graph; seeds act as in TensorFlow's random ops."""
    return tf.random.uniform([2], minval=-(1 << 31), maxval=(1 << 31) - 1, dtype=tf.int32, seed=seed)


def random_int32(key: Tensor, count: Tensor) -> Tensor:
    """Return uniform random int32 [count] for the positions 0 to count - 1.

    Args:
        key: int32 [2].
        count: int32 scalar.
    """
    first = _mix_bits(_mix_bits(key[0]) + key[1])
    second = _mix_bits(_bitwise_xor(first, _word_constant(0x85EBCA6B)) + key[0])
    h = tf.range(count) * _word_constant(0x9E3779B9) + first
    h = _xor_with_shifted(h, 16) * _word_constant(0x7FEB352D)
    h = (_xor_with_shifted(h, 15) + second) * _word_constant(0x846CA68B)
    return _xor_with_shifted(h, 16)


def _mix_bits(h: Tensor) -> Tensor:
    h = _xor_with_shifted(h, 16) * _word_constant(0x7FEB352D)
    h = _xor_with_shifted(h, 15) * _word_constant(0x846CA68B)
    return _xor_with_shifted(h, 16)


def _xor_with_shifted(h: Tensor, shift: int) -> Tensor:
    unsigned = tf.bitwise.right_shift(tf.bitcast(h, tf.uint32), tf.constant(shift, tf.uint32))
    return _bitwise_xor(h, tf.bitcast(unsigned, tf.int32))


def _bitwise_xor(a: Tensor, b: Tensor) -> Tensor:
    return tf.bitwise.bitwise_xor(a, b)


def _word_constant(value: int) -> Tensor:
    return tf.constant(value - (1 << 32) if value >> 31 else value, tf.int32)
