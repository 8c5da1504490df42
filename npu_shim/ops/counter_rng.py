"""Random bits by place: a hash of (key, place), so that the same mask can be made again and is never stored.

    h = place * c0 + k1;  h ^= h >> 16;  h *= c1;  h ^= h >> 15;  h += k2;  h *= c2;  h ^= h >> 16   (mod 2^32)

k1 and k2 are mixed from the two words of the key. Of one key, places from 0 to
2^32 - 1 have bits of their own.
"""

from __future__ import annotations

from typing import Any

from npu_shim import _tf

tf = _tf.tf


def new_key(seed: int | None) -> Any:
    """Two random int32, others each time the graph runs; seeds act as in every random op of TensorFlow."""
    return tf.random.uniform([2], minval=-(1 << 31), maxval=(1 << 31) - 1, dtype=tf.int32, seed=seed)


def bits(key: Any, count: Any) -> Any:
    """Random int32 for the places 0 to count - 1; all its values are as likely.

    Args:
        key: int32 [2].
        count: int32 scalar.
    """
    first = _mix(_mix(key[0]) + key[1])
    second = _mix(_xor(first, _word(0x85EBCA6B)) + key[0])
    h = tf.range(count) * _word(0x9E3779B9) + first
    h = _fold(h, 16) * _word(0x7FEB352D)
    h = (_fold(h, 15) + second) * _word(0x846CA68B)
    return _fold(h, 16)


def _mix(h: Any) -> Any:
    h = _fold(h, 16) * _word(0x7FEB352D)
    h = _fold(h, 15) * _word(0x846CA68B)
    return _fold(h, 16)


def _fold(h: Any, shift: int) -> Any:
    unsigned = tf.bitwise.right_shift(tf.bitcast(h, tf.uint32), tf.constant(shift, tf.uint32))
    return _xor(h, tf.bitcast(unsigned, tf.int32))


def _xor(a: Any, b: Any) -> Any:
    return tf.bitwise.bitwise_xor(a, b)


def _word(value: int) -> Any:
    return tf.constant(value - (1 << 32) if value >> 31 else value, tf.int32)
