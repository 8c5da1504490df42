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
    version, python_state, python_kept = random.getstate()
    name, keys, position, has_kept, kept = np.random.get_state()
    normals = np.array([np.nan if python_kept is None else python_kept, kept])  # the second numbers of pairs
    seed = tf_functions.eager_global_seed()
    bits = normals.view(np.int64)
    own = [*python_state, *keys, position, has_kept, *bits, -1 if seed is None else seed, _draw_fresh_seed()]
    shared = tf.Variable(np.array([int(number) for number in own], np.int64))
    broadcast(shared)
    numbers = shared.numpy()
    if not is_root():
        count = len(python_state)
        state = tuple(int(number) for number in numbers[:count])
        place, has_normal = (int(number) for number in numbers[-6:-4])
        of_python, of_numpy = (float(number) for number in numbers[-4:-2].view(np.float64))
        random.setstate((version, state, None if np.isnan(of_python) else of_python))
        np.random.set_state((str(name), numbers[count:-6].astype(np.uint32), place, has_normal, of_numpy))
    of_root = int(numbers[-1] if numbers[-2] < 0 else numbers[-2])
    if seed != of_root:
        tf.random.set_seed(of_root)


def _draw_fresh_seed() -> int:
    """Return a seed that does not depend on the seeds of the script, and does not use up their random numbers."""
    return random.SystemRandom().randrange(_SEEDS)
