"""Half precision in a recorded run: rounded, perturbed, or in float32 with the same steps skipped."""

from __future__ import annotations

import os
from dataclasses import asdict

import tensorflow as tf

from npu_shim.rehearsal.half.half_precision import HalfPrecision, half_precision
from npu_shim.rehearsal.half.modes import Mode
from npu_shim.rehearsal.half.perturbation import Perturbation
from npu_shim.rehearsal.half.skips import Skips
from npu_shim.rehearsal.half_run import HalfReport, HalfRun, Overflow
from npu_shim.rehearsal.numerics.history import Step
from npu_shim.rehearsal.numerics.numerics_watch import NumericsWatch
from npu_shim.rehearsal.recording.writer import Writer

FOLDER = "numerics"  # of the page of the watch, in the folder of the run


class Rehearsal:
    """The part of half precision in a recorded run.

    Args:
        half_run: what the run is asked for.
        writer: of the recording.
        folder: of the run.
    """

    def __init__(self, half_run: HalfRun, writer: Writer, folder: str) -> None:
        self._given = half_run
        self._writer = writer
        self._folder = folder
        self._half: HalfPrecision | None = None
        self._watch: NumericsWatch | None = None
        self._scales: list[float] = []

    def start(self) -> None:
        """Begin. TensorFlow and the hooks of the recording are there."""
        given, precision = self._given, self._given.precision
        if given.size is None:
            self._half = half_precision(**asdict(precision))
            self._watch = NumericsWatch(os.path.join(self._folder, FOLDER), 1, self._note_step).start()
            return
        if given.skips:
            Skips(given.skips, self._note_skip).install()
        if given.size:
            mode = Mode(precision.precision_mode, precision.mixlist)
            hook = Perturbation(tf.as_dtype(precision.dtype), mode, given.size, given.seed, given.everywhere)
            self._half = HalfPrecision(hook).start(False)

    def _note_step(self, step: Step) -> None:
        if step.scale is not None:
            self._scales.append(step.scale)
        if step.skipped:
            self._note_skip(step.optimizer, step.step)

    def _note_skip(self, optimizer: int, step: int) -> None:
        self._writer.write_event("skip", optimizer=optimizer, number=step)

    def end_with_report(self) -> HalfReport | None:
        """Return what the rounded run has to report; None for others."""
        if self._half is None or self._watch is None:
            return None
        self._watch.close()
        history = self._watch.history
        step, op = history.first or (None, None)
        return HalfReport(
            ops=sum(self._half.rounded.values()),
            matrix_casts=self._half.casts[True],
            casts=sum(self._half.casts.values()),
            steps=history.count,
            skipped_at_end=history.skipped_at_end,
            loss_scale=[self._scales[0], min(self._scales), self._scales[-1]] if self._scales else None,
            overflow=Overflow(history.bad, step, None if op is None else str(op), self._half.saturated),
        )
