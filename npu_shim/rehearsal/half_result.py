"""The part of a result of ``npu-shim verify --half`` about half precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Sequence

from npu_shim.rehearsal.comparing import half_band
from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.half_run import HalfReport, Precision

_MOST_STEPS = 100  # skipped ones that are listed
_MOST_OPS = 20


@dataclass(frozen=True)
class Saturated:
    """An op that saturated, and how often."""

    op: str
    times: int


@dataclass(frozen=True)
class OverflowPart:
    """Inf and NaN: the steps with them, the first one, the ops that saturated, and their number."""

    steps: int
    first_step: int | None
    first_op: str | None
    saturated: list[Saturated]
    saturated_ops: int


@dataclass(frozen=True)
class LargestLoss:
    """The largest difference of the loss; None if it is infinite."""

    kind: str
    name: str
    step: int
    difference: float | None
    band: float


@dataclass
class HalfPart:
    """The run in half precision, and the band.

    Attributes:
        dtype, precision_mode, mixlist, saturate: the arguments of half_precision().
        perturbation, perturbed_runs: the size of the perturbation, and the number of runs with it.
        ops, steps, skipped, skipped_steps, loss_scale, overflow: of the run.
        roundoff, quantile: of the band.
        loss: the largest difference of the loss.
        largest_share: of a band that a value takes.
        in_steps: values that move in steps, which are not compared.
    """

    dtype: str
    precision_mode: str
    mixlist: str | None
    saturate: bool
    perturbation: float
    perturbed_runs: int
    ops: int
    steps: int
    skipped: int
    skipped_steps: list[int]
    loss_scale: Sequence[float] | None
    overflow: OverflowPart
    roundoff: float
    quantile: float
    loss: LargestLoss | None = None
    largest_share: float | None = None
    in_steps: list[str] = field(default_factory=list)


def half_part_without_band(
    precision: Precision, size: float, runs: int, report: HalfReport, rounded: Recording
) -> HalfPart:
    """Return the part without a band.

    Args:
        precision: of the run.
        size: of the perturbation.
        runs: number of perturbed runs.
        report: what the run in half precision reports at its end.
        rounded: the recording of this run.
    """
    overflow = report.overflow
    saturated = [Saturated(op, times) for op, times in list(overflow.saturated.items())[:_MOST_OPS]]
    return HalfPart(
        dtype=precision.dtype,
        precision_mode=precision.precision_mode,
        mixlist=precision.mixlist,
        saturate=precision.saturate,
        perturbation=size,
        perturbed_runs=runs,
        ops=report.ops,
        steps=report.steps or rounded.steps,
        skipped=len(rounded.skips),
        skipped_steps=[step for _, step in rounded.skips[:_MOST_STEPS]],
        loss_scale=report.loss_scale,
        overflow=OverflowPart(
            overflow.steps, overflow.first_step, overflow.first_op, saturated, len(overflow.saturated)
        ),
        roundoff=half_band.ROUNDOFF[precision.dtype],
        quantile=half_band.student_t_quantile(runs),
    )
