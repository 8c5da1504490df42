"""A random choice among the True elements of a tensor, of a static number."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor


def random_choice_with_mask(
    x: Tensor, count: int = 0, seed: int = 0, seed2: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Choose True elements at random, each at most once.

    Args:
        x: bool tensor of rank 1 to 5.
        count: number of results; 0 for all True elements.
        seed: seed of the graph.
        seed2: seed of the op; both 0 for a random choice.
        name: name of the ops.
    Returns:
        y, int32 [count, rank], the indices of the chosen elements, then zeros; mask, bool [count], True for a chosen
        element.
    Raises:
        ValueError: count is negative.
    """
    if count < 0:
        raise ValueError(f"random_choice_with_mask: count={count!r} is not allowed. It must be 0 or more.")
    with tf.name_scope(name or "random_choice_with_mask"):
        places = tf.compat.v2.where(tf.convert_to_tensor(x))
        keys = tf.raw_ops.RandomUniform(shape=tf.shape(places)[:1], dtype=tf.float32, seed=seed, seed2=seed2)
        y, mask = _first_by_key(places, keys, count or tf.shape(places)[0])
        y.set_shape([count or None, places.shape[1]])
        mask.set_shape([count or None])
        return y, mask


def randomchoicewithmask(x: Tensor, count: int, seed: int = 0, seed2: int = 0) -> tuple[Tensor, Tensor]:
    """Choose True elements at random. Arguments and results as for random_choice_with_mask."""
    return random_choice_with_mask(x, count, seed, seed2)


def stateless_random_choice_with_mask(
    x: Tensor, count: Tensor, seed: Tensor, offset: Tensor, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Choose True elements at random: always the same ones for the same seed and offset.

    Args:
        x: bool tensor of rank 1 to 5.
        count: int32 scalar, the number of results.
        seed: int64 scalar.
        offset: int64 scalar.
        name: name of the ops.
    Returns:
        y and mask, as random_choice_with_mask.
    """
    with tf.name_scope(name or "stateless_random_choice_with_mask"):
        places = tf.compat.v2.where(tf.convert_to_tensor(x))
        pair = tf.stack([tf.reshape(tf.cast(number, tf.int64), []) for number in (seed, offset)])
        keys = tf.random.stateless_uniform(tf.shape(places)[:1], pair)
        return _first_by_key(places, keys, tf.reshape(tf.cast(count, tf.int32), []))


def _first_by_key(places: Tensor, keys: Tensor, count: int | Tensor) -> tuple[Tensor, Tensor]:
    chosen = tf.gather(places, tf.argsort(keys)[:count])
    number = tf.shape(chosen)[0]
    y = tf.pad(tf.cast(chosen, tf.int32), [[0, count - number], [0, 0]])
    return y, tf.range(count) < number
