"""Seeds of random numbers and deterministic operations."""

from __future__ import annotations

import random

import numpy as np

from npu_shim._host.host_env import process_environ
from npu_shim._tensorflow.tf_api import tf


def set_random_seed(seed: int) -> None:
    """Set the seeds of Python's random, of NumPy and of TensorFlow.

    Args:
        seed: an integer from 0 to 2**32 - 1.
    Raises:
        ValueError: if it is another value.
    """
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise ValueError(f"set_random_seed: seed={seed!r} must be an integer from 0 to 2**32 - 1.")
    random.seed(int(seed))
    np.random.seed(seed)
    tf.random.set_seed(seed)


def enable_op_determinism() -> None:
    """Let operations compute the same bits in each run. Set a seed, too.

    TensorFlow 2.6 reads the variable TF_DETERMINISTIC_OPS, which this function sets to 1, when it makes an operation.
    """
    process_environ()["TF_DETERMINISTIC_OPS"] = "1"
