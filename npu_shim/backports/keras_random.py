"""Functions of keras.random, which Keras 3 has, with the numbers that its backend of TensorFlow draws.

A number as seed draws the same numbers in each call. A SeedGenerator draws others in each call, and the same in each
run. Without a seed, tf.random.set_seed makes the numbers those of each run. Source: keras.io, keras.random.
"""

from __future__ import annotations

import random as python_random
from types import SimpleNamespace
from typing import Sequence, Union

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Tensor

_Seed = Union[int, "SeedGenerator", None]
_Shape = Sequence[int]


class SeedGenerator:
    """Seeds of random numbers that follow one another: [seed, 0], [seed, 1], and so on.

    Args:
        seed: an integer from 0; None takes one of Python's random.
        name: has no effect.
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        self.seed = python_random.randint(0, 2**31 - 1) if seed is None else seed
        self.name = name
        with tf.init_scope():
            self.state = tf.Variable([self.seed, 0], dtype=tf.int64, trainable=False, name="seed_generator_state")

    def next(self) -> Tensor:
        """Return the seed of the next numbers, two integers."""
        seed = tf.identity(self.state)
        with tf.control_dependencies([seed]):
            self.state.assign_add([0, 1], read_value=False)
        return seed


def _seed_tensor(seed: _Seed) -> Tensor:
    if isinstance(seed, SeedGenerator):
        return seed.next()
    if seed is None:
        return tf.random.uniform([2], 0, 2**31 - 1, tf.int32)
    return tf.constant([seed, 0], tf.int64)


def _dtype_or_floatx(dtype: DType | None) -> DType:
    return dtype or tf.keras.backend.floatx()


def normal(
    shape: _Shape, mean: float = 0.0, stddev: float = 1.0, dtype: DType | None = None, seed: _Seed = None
) -> Tensor:
    """Return numbers of a normal distribution, with a shape and a type, by default floatx."""
    return tf.random.stateless_normal(shape, _seed_tensor(seed), mean, stddev, _dtype_or_floatx(dtype))


def truncated_normal(
    shape: _Shape, mean: float = 0.0, stddev: float = 1.0, dtype: DType | None = None, seed: _Seed = None
) -> Tensor:
    """Return numbers of a normal distribution that are at most two standard deviations from its mean."""
    return tf.random.stateless_truncated_normal(shape, _seed_tensor(seed), mean, stddev, _dtype_or_floatx(dtype))


def uniform(
    shape: _Shape, minval: float = 0.0, maxval: float = 1.0, dtype: DType | None = None, seed: _Seed = None
) -> Tensor:
    """Return numbers that are equally likely from minval to below maxval."""
    return tf.random.stateless_uniform(shape, _seed_tensor(seed), minval, maxval, _dtype_or_floatx(dtype))


def randint(shape: _Shape, minval: int, maxval: int, dtype: DType = "int32", seed: _Seed = None) -> Tensor:
    """Return integers that are equally likely from minval to below maxval."""
    return tf.random.stateless_uniform(shape, _seed_tensor(seed), minval, maxval, dtype)


def categorical(logits: Tensor, num_samples: int, dtype: DType = "int32", seed: _Seed = None) -> Tensor:
    """Return classes that are drawn with the probabilities softmax(logits).

    Args:
        logits: a tensor of shape [n, classes].
        num_samples: the number of classes for each row.
        dtype: the type of the result.
        seed: a number, a SeedGenerator, or None.
    Returns:
        A tensor of shape [n, num_samples].
    """
    return tf.random.stateless_categorical(logits, num_samples, _seed_tensor(seed), dtype)


def shuffle(x: Tensor, axis: int = 0, seed: _Seed = None) -> Tensor:
    """Return a tensor whose slices along an axis are in a random order. Orders differ from those of Keras 3."""
    keys = tf.random.stateless_uniform([tf.shape(x)[axis]], _seed_tensor(seed))
    return tf.gather(x, tf.argsort(keys), axis=axis)


def dropout(inputs: Tensor, rate: float, noise_shape: _Shape | None = None, seed: _Seed = None) -> Tensor:
    """Return a tensor whose numbers are 0 with the probability rate, and else divided by 1 - rate.

    Args:
        inputs: a tensor of real numbers.
        rate: a number from 0 to below 1.
        noise_shape: the shape of the random numbers, which are broadcast to that of the inputs; None is theirs.
        seed: a number, a SeedGenerator, or None.
    """
    shape = tf.shape(inputs) if noise_shape is None else noise_shape
    kept = tf.random.stateless_uniform(shape, _seed_tensor(seed), dtype=inputs.dtype) >= rate
    return tf.where(kept, inputs / (1 - rate), tf.zeros_like(inputs))


random = SimpleNamespace(
    SeedGenerator=SeedGenerator,
    categorical=categorical,
    dropout=dropout,
    normal=normal,
    randint=randint,
    shuffle=shuffle,
    truncated_normal=truncated_normal,
    uniform=uniform,
)
