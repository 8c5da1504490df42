"""Values of float64 that float32 does not hold, and the code of TensorFlow that makes values for variables."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Iterable

import numpy as np

from npu_shim._tensorflow import script_frames

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value

# Types of ops that add to a variable.
ADDITIONS = frozenset(
    """AssignAdd AssignAddVariableOp ScatterAdd ScatterNdAdd ResourceScatterAdd ResourceScatterNdAdd""".split()
)
OPTIMIZER = "optimizer"
# Files of TensorFlow that make ops of the type of a variable or a loss: initial values, optimizers, gradients of tapes.
_FOLLOWING = (OPTIMIZER, "slot_creator", "moving_averages", "variable", "init_ops", "backprop")
_MOST = 2.0**24  # the integers up to it are float32


def exceeds_float32(value: Value) -> bool:
    """Return True for numbers of which float32 loses more than the last digits: large integers, times, tiny numbers."""
    numbers = np.asarray(value, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        narrow = numbers.astype(np.float32).astype(np.float64)
    is_large = (narrow != numbers) & (np.abs(numbers) > _MOST)
    return bool(np.any(is_large | ((narrow == 0) & (numbers != 0))))


def is_called_by_files(files: Iterable[str], words: tuple[str, ...] = _FOLLOWING) -> bool:
    """Return True if a file of a library has called that makes ops of a given type, and no file of the script after it.

    Args:
        files: that called, the innermost first.
        words: in the names of the files.
    """
    names = (path.rpartition("-packages")[2] for path in itertools.takewhile(script_frames.is_library, files))
    return any(word in name for name in names for word in words)
