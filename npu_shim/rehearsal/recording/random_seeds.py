"""Make two runs draw the same random numbers: op seeds by call site, and seeds for Python and NumPy.

TensorFlow derives the seed of an op without one from its position in the graph, which changes with a migration. Here
it is derived from the function of the script that makes the op, and from the number of such ops that this function
has made in the same graph.
"""

from __future__ import annotations

import random
import weakref
import zlib
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Result


def seed_python(seed: int) -> None:
    """Seed the generators of Python and NumPy, which a script may seed again."""
    random.seed(seed)
    np.random.seed(seed)


def seed_ops_by_call_site(seed: int) -> None:
    """Give each random op, and each shuffled dataset, without a seed of its own one that follows from its call site.

    Call it after TensorFlow is imported.

    Args:
        seed: changes all these seeds.
    """
    from npu_shim._tensorflow import tf_recording

    next_seed = _seeds_by_call_site(seed)

    def make(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def get_seed(op_seed: Any = None) -> Result:
            return original(next_seed() if op_seed is None else op_seed)

        return get_seed

    tf_recording.replace_get_seed(make)
    tf_recording.seed_random_boxes(next_seed)
    tf_recording.set_default_seed()  # else ranks that share a random state set another one


def _seeds_by_call_site(seed: int) -> Callable[[], int]:
    from npu_shim._tensorflow import tf_recording

    counts: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()

    def next_seed() -> int:
        function = tf_recording.script_function()
        made = counts.setdefault(tf_recording.graph_of_op(), {})
        made[function] = made.get(function, 0) + 1
        return call_site_seed(seed, function, made[function])

    return next_seed


def seed_graphs(seed: int) -> None:
    """Add a number to the seeds that TensorFlow derives, so that runs of one script with several seeds differ.

    It derives none where the script sets no seed. So the global seed is set.
    """
    from npu_shim._tensorflow import tf_recording

    def make(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def get_seed(op_seed: Any = None) -> Result:
            tf_recording.set_default_graph_seed()
            graph_seed, own = original(op_seed)
            return graph_seed, own if op_seed is not None else (int(own) + 7919 * seed) & 0x7FFFFFFF

        return get_seed

    tf_recording.replace_get_seed(make)
    tf_recording.seed_random_boxes(_seeds_by_call_site(seed))
    tf_recording.set_default_seed()


def call_site_seed(seed: int, function: str, number: int) -> int:
    """Return the seed of the number-th random op that a function makes in a graph."""
    return zlib.crc32(f"{seed} {function} {number}".encode()) & 0x7FFFFFFF
