"""The overflow of rehearsals in half precision: its result, and the flag that the device has.

With saturation, an overflow results in the largest number, and only the device's flag tells it. npu_shim's loss scale
optimizers ask the flag.
"""

from __future__ import annotations

from typing import Sequence, cast

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_numpy_function import add_array_function_op
from npu_shim._tensorflow.types import Tensor

tf = tf_api.tf


class Overflow:
    """The state of this process.

    Attributes:
        rehearsed: True while half precision is rehearsed, so that an overflow can saturate.
        saturates: True if an overflow results in the largest number, False for infinity.
        flag: True if a number has saturated since the flag was cleared.
    """

    def __init__(self) -> None:
        self.rehearsed = self.saturates = self.flag = False

    def set_mode(self, mode: int) -> None:
        """Set the result of an overflow of ops that are made from now on: 0 for the largest number, 1 for infinity."""
        self.saturates = self.rehearsed and mode == 0

    def read_and_clear_flag(self) -> bool:
        """Return the flag and clear it."""
        flag, self.flag = self.flag, False
        return flag


OVERFLOW = Overflow()


def is_overflow_flag_clear(after: Sequence[Tensor]) -> Tensor:
    """Return a bool scalar tensor: True if nothing has saturated until some tensors are there. The flag is cleared."""

    def read() -> list[np.ndarray]:
        return [np.array(not OVERFLOW.read_and_clear_flag())]

    if tf.executing_eagerly():
        return tf.constant(read()[0])
    with tf.control_dependencies(after):
        clear = cast("list[Tensor]", add_array_function_op(lambda unused: read(), [tf.constant(0)], [tf.bool]))[0]
    clear.set_shape([])
    return clear
