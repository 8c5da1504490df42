"""The same random numbers on all ranks."""

from __future__ import annotations

import random

import numpy as np

from npu_shim._tensorflow import tf_functions
from npu_shim._tensorflow.tf_api import tf
from npu_shim.npu_device.distribute.global_batches import is_root
from npu_shim.npu_device.distribute.hccl import broadcast, is_worker

_SEEDS = 2**31 - 1


def share_random_state() -> None:
    """Let all ranks go on with the random numbers of rank 0: those of random, numpy.random and tf.random.

    Ranks then shuffle alike, and the parts that they take of the data do not overlap. Rank 0 goes on as before, but
    for TensorFlow's random numbers if the script has not set their seed (tf.random.set_seed). On one process nothing
    happens.
    """
    if not is_worker("npu.distribute.share_random_state"):
        return
    version, python_state, _ = random.getstate()
    name, keys, position, *_ = np.random.get_state()
    seed = tf_functions.global_seed()
    own = [*python_state, *(int(key) for key in keys), int(position), -1 if seed is None else seed, _fresh()]
    shared = tf.Variable(np.array(own, np.int64))
    broadcast(shared)
    numbers = [int(number) for number in shared.numpy()]
    count = len(python_state)
    if not is_root():
        random.setstate((version, tuple(numbers[:count]), None))
        np.random.set_state((str(name), np.array(numbers[count:-3], np.uint32), numbers[-3], 0, 0.0))
    of_root = numbers[-1] if numbers[-2] < 0 else numbers[-2]
    if seed != of_root:
        tf.random.set_seed(of_root)


def _fresh() -> int:
    """Return a seed that does not depend on the seeds of the script, and does not use up their random numbers."""
    return random.SystemRandom().randrange(_SEEDS)
