"""Make two runs draw the same random numbers: op seeds by call site, and seeds for Python and NumPy.

TensorFlow derives the seed of an op without one from its position in the graph, which changes with a migration. Here
it is derived from the function of the script that makes the op, and from the number of such ops that this function
has made in the same graph.

While a tape records, all functions count as one, and in eager code the numbers begin again after each update. So eager
steps draw what a tf.function of the step would draw: an op continues with the numbers of the op with its seed. Initial
values count apart: in a tf.function the graph that makes the variables is not the one that draws.
"""

from __future__ import annotations

import itertools
import random
import weakref
import zlib
from typing import Callable, Collection

import numpy as np

from npu_shim._tensorflow.types import Function, Graph, Result
from npu_shim.rehearsal.recording.entropy import Entropy, Note, is_from_clock, reads_clock

_RANKS_APART = 1009
_STEP = "step with a tape"  # in place of the names of functions


def seed_python(seed: int, note: Note) -> None:
    """Seed the generators of Python and NumPy, which a script may seed again, and give both the same entropy.

    Args:
        seed: of the run.
        note: receives the seeds that the script sets.
    """
    random.seed(seed)
    np.random.seed(seed)
    Entropy(seed, note).replace_entropy_functions()


class Apart:
    """The random numbers of a rank other than 0 where it does not set the seeds of rank 0.

    Args:
        rank: its number.
        known: the global seeds that rank 0 sets, as text.
    """

    def __init__(self, rank: int, known: Collection[str]) -> None:
        self._rank = rank
        self._known = known

    def seed_of_rank(self, seed: int, global_seed: int | None = None) -> int:
        """Return the seed of the run on this rank, from that on rank 0 and the global seed that the script has set."""
        return seed if str(global_seed) in self._known else seed + _RANKS_APART * self._rank


def seed_ops_by_call_site(
    seed: int, note: Note, own_seeds: Apart | None = None, updates_if_recording: Callable[[], int | None] = lambda: None
) -> None:
    """Give each random op, and each shuffled dataset, without a seed of its own one that follows from its call site.

    A seed from the clock counts as none. Call it after TensorFlow is imported.

    Args:
        seed: changes all these seeds.
        note: receives the global seeds that the script sets.
        own_seeds: of this rank, or None.
        updates_if_recording: returns the number of updates so far while a tape records; None while none does.
    """
    from npu_shim._tensorflow import tf_recording

    next_seed = _call_site_seeder(
        lambda: own_seeds.seed_of_rank(seed, tf_recording.global_seed()) if own_seeds else seed, updates_if_recording
    )
    noted: set[int] = set()

    def seeded_get_seed(original: Function) -> Function:
        def get_seed(op_seed: int | None = None) -> Result:
            given = tf_recording.global_seed()
            if is_from_clock(given):
                tf_recording.set_global_seed(seed)
            elif given is not None and given not in noted:
                noted.add(given)
                note("tf.random.set_seed", given, tf_recording.script_line_text())
            return original(next_seed("") if op_seed is None or _is_of_clock(op_seed) else op_seed)

        return get_seed

    def seeded_get_seed_of_datasets(original: Function) -> Function:
        """Count them apart: initializers of Keras ask for a seed in some versions of TensorFlow only."""
        return lambda seed: original(next_seed("data ") if seed is None or _is_of_clock(seed) else seed)

    tf_recording.replace_get_seed(seeded_get_seed)
    tf_recording.replace_get_seed_of_datasets(seeded_get_seed_of_datasets)
    tf_recording.seed_generators(lambda: next_seed("Generator "))
    tf_recording.seed_random_boxes(lambda: next_seed("boxes "))
    tf_recording.seed_keras_generator(lambda: next_seed("Keras "))
    if own_seeds is None:  # share_random_state() sets that of rank 0
        tf_recording.set_default_seed()  # else ranks that share a random state set another one
    tf_recording.replace_script_seeds(lambda seed: next_seed("state ") if _is_of_clock(seed) else seed)


def _is_of_clock(seed: Result) -> bool:
    """Return True for a time of this run, and for a number in a line of the script that reads a clock for it."""
    from npu_shim._tensorflow import script_frames

    frame = next(script_frames.running_frames(), None)
    return is_from_clock(seed) or (frame is not None and np.ndim(seed) == 0 and reads_clock(frame, seed))


def shift_graph_seeds(seed: int) -> None:
    """Add a number to the seeds that TensorFlow derives, so that runs of one script with several seeds differ.

    It derives none where the script sets no seed. So the global seed is set.
    """
    from npu_shim._tensorflow import tf_recording

    next_seed = _call_site_seeder(lambda: seed)

    def seeded_get_seed(original: Function) -> Function:
        def get_seed(op_seed: int | None = None) -> Result:
            tf_recording.set_default_graph_seed()
            graph_seed, own = original(op_seed)
            return graph_seed, own if op_seed is not None else (int(own) + 7919 * seed) & 0x7FFFFFFF

        return get_seed

    tf_recording.replace_get_seed(seeded_get_seed)
    tf_recording.seed_generators(lambda: next_seed("Generator "))
    tf_recording.seed_random_boxes(lambda: next_seed("boxes "))
    tf_recording.set_default_seed()


def _call_site_seeder(
    seed: Callable[[], int], updates_if_recording: Callable[[], int | None] = lambda: None
) -> Callable[[str], int]:
    """Return a function that returns the seed of the next random op of a kind that a function of the script makes."""
    from npu_shim._tensorflow import script_frames, tf_recording

    def is_initial_value() -> bool:
        files = itertools.takewhile(script_frames.is_library, script_frames.running_files())
        return any("init_ops" in path or "initializers" in path for path in files)

    counts: weakref.WeakKeyDictionary[Graph, dict[str, int]] = weakref.WeakKeyDictionary()

    def next_seed(kind: str) -> int:
        updates = updates_if_recording()
        if updates is not None and is_initial_value():
            kind += "initial "
        function = kind + (tf_recording.script_function_name() if updates is None else _STEP)
        step = function if updates is None or not tf_recording.tf.executing_eagerly() else f"{function} {updates}"
        graph_counts = counts.setdefault(tf_recording.graph_of_new_ops(), {})
        graph_counts[step] = graph_counts.get(step, 0) + 1
        return call_site_seed(seed(), function, graph_counts[step])

    return next_seed


def call_site_seed(seed: int, function: str, number: int) -> int:
    """Return the seed of the number-th random op that a function makes in a graph."""
    return zlib.crc32(f"{seed} {function} {number}".encode()) & 0x7FFFFFFF
