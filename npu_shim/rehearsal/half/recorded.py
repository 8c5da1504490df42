"""Half precision in a recorded run: rounded, perturbed, or in float32 with the same steps skipped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping

import tensorflow as tf

from npu_shim.rehearsal.half.half import HalfPrecision, half_precision
from npu_shim.rehearsal.half.modes import Mode
from npu_shim.rehearsal.half.perturbation import Perturbation
from npu_shim.rehearsal.half.skips import Skips
from npu_shim.rehearsal.numerics.watch import NumericsWatch

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject
    from npu_shim.rehearsal.numerics.history import Step
    from npu_shim.rehearsal.recording.writer import Writer

FOLDER = "numerics"  # of the page of the watch, in the folder of the run


class Rehearsal:
    """The part of half precision in a recorded run.

    Args:
        given: ``precision``: the arguments of half_precision(); ``size``: of a perturbation, 0 for float32, None to
            round; ``seed``, ``everywhere``: of a perturbation; ``skips``: the steps that a float32 run skips.
        writer: of the recording.
        folder: of the run.
    """

    def __init__(self, given: Mapping[str, Any], writer: Writer, folder: str) -> None:
        self._given = given
        self._writer = writer
        self._folder = folder
        self._half: HalfPrecision | None = None
        self._watch: NumericsWatch | None = None
        self._scales: list[float] = []

    def start(self) -> None:
        """Begin. TensorFlow and the hooks of the recording are there."""
        precision: Mapping[str, Any] = self._given["precision"]
        size: float | None = self._given["size"]
        if size is None:
            self._half = half_precision(**precision)
            self._watch = NumericsWatch(os.path.join(self._folder, FOLDER), 1, self._step).start()
            return
        if self._given["skips"]:
            Skips([(number, step) for number, step in self._given["skips"]], self._skip).install()
        if size:
            mode = Mode(precision["precision_mode"], precision["mixlist"])
            hook = Perturbation(
                tf.as_dtype(precision["dtype"]), mode, size, self._given["seed"], self._given["everywhere"]
            )
            self._half = HalfPrecision(hook).start(False)

    def _step(self, step: Step) -> None:
        if step.scale is not None:
            self._scales.append(step.scale)
        if step.skipped:
            self._skip(step.optimizer, step.step)

    def _skip(self, optimizer: int, step: int) -> None:
        self._writer.event("skip", optimizer=optimizer, number=step)

    def end(self) -> JsonObject | None:
        """Return what the rounded run has to report; None for others."""
        if self._half is None or self._watch is None:
            return None
        self._watch.close()
        history = self._watch.history
        step, op = history.first or (None, None)
        return {
            "ops": sum(self._half.rounded.values()),
            "matrix_casts": self._half.casts[True],
            "casts": sum(self._half.casts.values()),
            "steps": history.count,
            "skipped_at_end": history.skipped_at_end,
            "loss_scale": [self._scales[0], min(self._scales), self._scales[-1]] if self._scales else None,
            "overflow": {
                "steps": history.bad,
                "first_step": step,
                "first_op": None if op is None else str(op),
                "saturated": self._half.saturated,
            },
        }
