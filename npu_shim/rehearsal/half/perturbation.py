"""Perturb what convolutions and matrix products get, and compute in float32: the measure of half precision.

    x' = x * (1 + a * r),   r uniform in [-1, 1), drawn anew in each step

Backward error analysis calls a computation stable if its result is the exact one of inputs that are perturbed by
the size of the rounding. So a run whose weights, batches and other float32 values are perturbed where a device casts
them to 16 bits differs from an unperturbed one as much as a sound run in half precision may. Only the inputs of
convolutions and matrix products are perturbed: a perturbed sum of a variable and its update would stay in the variable,
and cover an update that is lost in the rounding.

Source: Higham, Mary, "A new approach to probabilistic rounding error analysis", SIAM Journal on Scientific Computing
41, 2019.
"""

from __future__ import annotations

import itertools

import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation
from npu_shim._tensorflow.types import DType, Tensor
from npu_shim.rehearsal.assess.work import MATRIX
from npu_shim.rehearsal.half.modes import Mode
from npu_shim.rehearsal.half.rounding import Rounding, show_to_tapes

v1 = tf.compat.v1


class Perturbation(Rounding):
    """The hook that perturbs.

    Args:
        dtype: tf.float16 or tf.bfloat16.
        mode: the precision of each op type.
        size: a of the formula.
        seed: of the random numbers.
        everywhere: True to perturb the inputs of all ops in 16 bits, for scripts without matrix products.
    """

    def __init__(self, dtype: DType, mode: Mode, size: float, seed: int, everywhere: bool = False) -> None:
        super().__init__(dtype, mode)
        self._size = size
        self._seed = seed
        self._everywhere = everywhere
        self._numbers = itertools.count(1)

    def convert_input(self, tensor: Tensor, op_type: str, is_cast: bool) -> Tensor:
        """Return a perturbed tensor where a device casts it."""
        if not is_cast or not (self._everywhere or MATRIX.match(op_type)):
            return tensor
        graph = None if tf.executing_eagerly() else v1.get_default_graph()
        number = 1 if graph is None else next(self._numbers)  # eager ops with equal seeds draw from one generator
        with tf_op_creation.create_hook_ops(graph):
            uniform = tf.raw_ops.RandomUniform(shape=tf.shape(tensor), dtype=tf.float32, seed=self._seed, seed2=number)
            factor = tf.add(tf.multiply(uniform, 2 * self._size), 1 - self._size)
            result = tf.multiply(tensor, factor)
            result.set_shape(tensor.shape)
        return show_to_tapes(result, tensor)

    def convert_output(self, tensor: Tensor, name: str) -> Tensor:
        """Return the tensor as it is."""
        return tensor
