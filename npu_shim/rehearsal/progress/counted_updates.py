"""Watch the updates of optimizers, without an op for it in their graph."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import tensorflow as tf

from npu_shim._tensorflow import tf_recording
from npu_shim._tensorflow.types import Graph, Operation, Optimizer, Result, Tensor
from npu_shim.rehearsal.progress.counted_functions import Functions, Steps
from npu_shim.rehearsal.progress.progress import Progress, scalar_or_none
from npu_shim.rehearsal.recording.graph_inputs import learning_rates_of
from npu_shim.rehearsal.recording.kinds import LOSS, RATE
from npu_shim.rehearsal.recording.optimizers import UpdateWatch, learning_rate_rows
from npu_shim.rehearsal.recording.update_hooks import Pairs

_UPDATES = "npu_shim_updates"  # attribute of a graph, so that they end with it


class Update(NamedTuple):
    """An update in a graph of TensorFlow 1.

    Attributes:
        number: among the updates of the graph, from 0.
        ops: what runs it.
        shown: kind, name and tensor of its loss and learning rates.
    """

    number: int
    ops: tuple[Operation, ...]
    shown: tuple[tuple[str, str, Tensor], ...]


class Updates(UpdateWatch):
    """Count the updates of eager code, and remember those of graphs and functions.

    Args:
        progress: counts.
        functions: the tf.functions of this process.
    """

    def __init__(self, progress: Progress, functions: Functions) -> None:
        super().__init__()
        self._progress, self._functions = progress, functions

    def on_eager_update(self, optimizer: Optimizer, number: int, pairs: Pairs) -> None:
        """Count the update."""
        progress = self._progress
        if progress.is_inside("fit", "train_on_batch"):  # which count themselves
            return
        _give_learning_rate_reader(progress, optimizer)
        progress.count_steps(number)
        if progress.is_due():
            progress.show_loss()
            rate = progress.learning_rate()
            if rate is not None:
                progress.keep_value(RATE, "learning_rate", rate)

    def on_graph_update(
        self, graph: Graph, start: int, optimizer: Optimizer, number: int, pairs: Pairs, result: Result
    ) -> Result:
        """Remember the update, which runs with its graph or its function."""
        if getattr(graph, "building_function", False):
            self._functions.remember_update(number, Steps(optimizer))
            _give_learning_rate_reader(self._progress, optimizer)
            return result
        ops = tuple(tf_recording.ops_of_update(result))
        losses = [(LOSS, "loss", loss) for loss in self.losses_of(graph, pairs)]
        rates = [(RATE, name, rate) for name, rate in learning_rates_of(graph.get_operations()[start:], graph)]
        # Optimizers that the script does not keep share a number, so updates are counted.
        known = updates_in_graph(graph)
        setattr(graph, _UPDATES, [*known, Update(len(known), ops, tuple(losses + rates))])
        return result


def updates_in_graph(graph: Graph) -> list[Update]:
    """Return the updates of a graph of TensorFlow 1."""
    return getattr(graph, _UPDATES, [])


def _give_learning_rate_reader(progress: Progress, optimizer: Optimizer) -> None:
    """Let the progress read the learning rate of a Keras optimizer."""
    kept = weakref.ref(optimizer)

    def read() -> float | None:
        alive = kept()
        rates = learning_rate_rows(alive) if alive is not None and tf.executing_eagerly() else []
        return scalar_or_none(rates[0][2]) if rates else None

    progress.learning_rate = read
