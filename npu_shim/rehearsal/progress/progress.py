"""The progress of this process: training steps and the last values. The hooks of recordings take it for a recorder."""

from __future__ import annotations

import time
from typing import Callable, Iterable

import numpy as np

from npu_shim._host import host_device
from npu_shim._tensorflow.types import Tensor, Value
from npu_shim.rehearsal.recording.kinds import FETCH, LOG, LOSS, METRIC, RATE, SUMMARY
from npu_shim.rehearsal.recording.recorder import Watcher

_SHOWN = (LOSS, RATE, FETCH, SUMMARY, LOG, METRIC)
_LOSSES = {LOSS: 4, LOG: 3, SUMMARY: 2}  # how certain the loss of a kind is
_UNCERTAIN = 1  # a log or summary with the word in its name
_ALL_STEPS, _INTERVAL_S = 1000, 0.1  # values of each of the first steps, later at most ten times a second


class Progress(Watcher):
    """The training steps and the last scalars of this process.

    Args:
        write: called with tag, value and step of each scalar; None if nobody wants them.
    """

    records_tensors = False

    def __init__(self, write: Callable[[str, float, int], None] | None = None) -> None:
        super().__init__()
        self.loss: float | None = None
        self.last_loss: Tensor = None
        self.first_step: tuple[float, int] | None = None  # its time and number
        self.last_step = time.monotonic()
        self.learning_rate: Callable[[], float | None] = lambda: None
        self._write = write
        self._counts: dict[int, int] = {}
        self._due = 0.0
        self._certainty = 0  # of the loss

    @property
    def adds_summary_ops(self) -> bool:
        """True on the CPU. On a device nothing is added to a graph."""
        return not host_device.detect_without_import().is_npu

    def count_steps(self, source: int = 0, number: int = 1) -> None:
        """Count training steps. The steps are those of the source with most of them.

        Args:
            source: number of the optimizer that makes the steps, from 0.
            number: of steps.
        """
        self.set_step_count(source, self._counts.get(source, 0) + number)

    def steps_of_source(self, source: int) -> int:
        """Return the number of steps of a source."""
        return self._counts.get(source, 0)

    def set_step_count(self, source: int, step: int) -> None:
        """Set the number of steps of a source, as its global step says."""
        self._counts[source] = step
        self.steps = step if len(self._counts) == 1 else max(self._counts.values())
        self.last_step = time.monotonic()
        if self.first_step is None:
            self.first_step = self.last_step, self.steps

    def is_due(self) -> bool:
        """Return True if the values of this step are wanted: those of each of the first, later ten times a second."""
        if self._write is not None and self.steps <= _ALL_STEPS:
            return True
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + _INTERVAL_S
        return True

    def count_batch_and_want_logs(self, batch: int) -> bool:
        """Count a batch of Keras' fit. Return True if its logs are wanted."""
        before = getattr(self._inside, "batch", -1)
        self._inside.batch = batch
        self.count_steps(-1, batch - before if batch > before else batch + 1)  # more than 1 with steps_per_execution
        return self.is_due()

    def record_values(self, kind: str, values: Iterable[tuple[str, Value]], step: int | None = None) -> None:
        """Keep the scalars among named values of one kind."""
        if kind not in _SHOWN:
            return
        for name, value in values:
            number = scalar_or_none(value)
            if number is not None:
                self.keep_value(kind, name, number)

    def keep_value(self, kind: str, name: str, number: float) -> None:
        """Keep a scalar."""
        certainty = _certainty_of_loss(kind, name.lower())
        if certainty and certainty >= self._certainty:
            self.loss, self._certainty = number, certainty
        if self._write is not None:
            tag = name if kind in (LOSS, RATE) else f"{kind}/{name}"
            self._write(tag.replace(" ", "_"), number, self.steps)

    def show_loss(self) -> None:
        """Keep the last loss of eager code."""
        number = None if self.last_loss is None else scalar_or_none(self.last_loss)
        if number is not None:
            self.keep_value(LOSS, "loss", number)


def _certainty_of_loss(kind: str, name: str) -> int:
    if kind not in _LOSSES or "val_" in name:
        return 0
    if kind == LOSS or name.replace(" ", "/").rpartition("/")[2] == "loss":
        return _LOSSES[kind]
    return _UNCERTAIN if "loss" in name else 0


def scalar_or_none(value: Value) -> float | None:
    """Return the number in an array or tensor with one element; None for all others."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        return None
    return float(array.reshape(()))
