"""Passes over datasets: what they read, and the use that is noted of it."""

from __future__ import annotations

import weakref
from typing import Mapping

from npu_shim._tensorflow import tf_data, tf_graph
from npu_shim._tensorflow.types import Dataset, Optimizer
from npu_shim.data.reading_call import current_reading_call
from npu_shim.rehearsal.observing.batches import Batches

TRAINING, EVALUATION, PREDICTION, OTHER = "training", "evaluation", "prediction", "other"
_BATCHES = "npu_shim_batches"  # attribute of a dataset that is watched


def watch_batches(dataset: Dataset, batches: Batches) -> None:
    """Let the passes over a dataset, and over those that are made from it, note their use."""
    setattr(tf_data.unwrap_dataset(dataset), _BATCHES, batches)


def watched_batches(dataset: Dataset) -> list[Batches]:
    """Return the notes on a dataset and those that it reads from."""
    datasets = tf_graph.reachable_nodes([tf_data.unwrap_dataset(dataset)], tf_data.dataset_inputs)
    return [getattr(source, _BATCHES) for source in datasets if hasattr(source, _BATCHES)]


class Reading:
    """A pass over a dataset.

    Args:
        watched: what it reads.
        by: what reads it.
    """

    def __init__(self, watched: list[Batches], by: str) -> None:
        self.watched, self.by = watched, by
        self.made = self.at = 0  # the number of the batch at which it begins, and of its last batch
        self.batches = self.steps = 0  # its own batches, and the steps at the last of them
        self.gradients = 0  # the number of gradients of tapes before it
        self.is_mixed = self.trains = False
        self.optimizer_steps: Mapping[weakref.ref[Optimizer], int] = {}  # when a loop of eager code began

    def note_use(self, use: str) -> None:
        """Note a use."""
        for batches in self.watched:
            batches.seen.note("used", use)
            if use == TRAINING:
                batches.seen.note("trained_by", self.by)
                batches.note_training()


def note_reading_if_by_keras(reading: Reading) -> bool:
    """Note a reading by Keras. Return False if something else reads."""
    call = current_reading_call()
    if call is None or not call.is_keras:
        return False
    reading.by = "keras"
    reading.note_use(TRAINING if call.trains else PREDICTION if call.method.startswith("predict") else EVALUATION)
    return True
