"""The parts of a result that the comparison of two recordings has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Sequence

from npu_shim.rehearsal.comparing.comparison import Compared, Comparison, Departure
from npu_shim.rehearsal.comparing.recording import Stream
from npu_shim.rehearsal.comparing.seeds import Band
from npu_shim.rehearsal.recording.digest import NOT_FINITE, scalar_of
from npu_shim.rehearsal.recording.kinds import FETCH, FINAL, LOG, LOSS, METRIC, RESULT, SUMMARY
from npu_shim.rehearsal.recording.losses import BY_INPUTS, FIRST
from npu_shim.rehearsal.result import (
    Alone,
    Departing,
    Element,
    FinalVariable,
    FirstDeparture,
    Loss,
    LossPoint,
    MeanBand,
    Metric,
    Point,
    Result,
    StreamPart,
)

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value


_MOST_TENSORS = 100  # of the first step that departs


def add_values(made: Result, comparison: Comparison, elements: Sequence[Element] = ()) -> None:
    """Add what a comparison has to a result.

    Args:
        made: the result.
        comparison: of the two recordings.
        elements: those of the first tensor that departs which differ most.
    """
    first = comparison.first
    made.first_departure = _first(comparison, first, elements) if first else None
    made.streams = [
        StreamPart(
            kind=each.original.kind,
            name=each.original.name,
            migrated_name=each.migrated.name,
            dtype=each.original.dtype,
            shape=list(each.original.values[0].shape),
            values_original=len(each.original.values),
            values_migrated=len(each.migrated.values),
            largest_difference=_finite(each.largest),
            first_departure_step=min((d.step for d in each.departures), default=None),
        )
        for each in comparison.compared
    ]
    made.curve = _curve(comparison)
    made.losses = _losses(comparison)
    made.metrics = [
        Metric(each.original.name, number, _number(a), _number(b))
        for each in comparison.compared
        if each.original.kind in (RESULT, METRIC)
        for number, (a, b) in enumerate(zip(each.original.values, each.migrated.values), 1)
        if a.shape == b.shape == ()
    ]
    made.final_variables = [
        FinalVariable(
            each.original.name,
            list(each.original.values[-1].shape),
            _finite(each.differences[-1][1]) if each.differences else None,
        )
        for each in comparison.compared
        if each.original.kind == FINAL
    ]
    made.undetermined_variables = comparison.undetermined
    made.redefined = comparison.redefined
    made.only_original = _alone(comparison.matches.only_original)
    made.only_migrated = _alone(comparison.matches.only_migrated)


def mean_bands(bands: Sequence[Band]) -> list[MeanBand]:
    """Return the bands of several seeds for a result."""
    return [
        MeanBand(
            each.kind,
            each.name,
            original=_finite(each.original),
            migrated=_finite(each.migrated),
            band=_finite(each.band),
            inside=each.is_inside,
        )
        for each in bands
    ]


def _first(comparison: Comparison, first: Departure, elements: Sequence[Element]) -> FirstDeparture:
    same_step = [each for each in comparison.departures if each.step == first.step]
    return FirstDeparture(
        step=first.step,
        kind=first.kind,
        name=first.name,
        values=first.text,
        difference=_finite(first.difference),
        allowed=first.allowed,
        tensors_departing_there=len(same_step),
        tensors=[
            Departing(each.kind, each.name, each.text, _finite(each.difference), each.allowed)
            for each in same_step[:_MOST_TENSORS]
        ],
        elements=list(elements),
    )


def _alone(streams: Sequence[Stream]) -> list[Alone]:
    return [Alone(each.kind, each.name, len(each.values)) for each in streams]


def loss_of(comparison: Comparison) -> Compared | None:
    """Return what is shown as the loss: a loss, else a log, fetch or summary with this word, else any fetch."""
    several = losses_of(comparison)
    if several:
        return several[0]
    for kind, word in ((LOSS, ""), (LOG, "loss"), (FETCH, "loss"), (SUMMARY, "loss"), (FETCH, "")):
        for each in comparison.compared:
            if each.original.kind == kind and word in each.original.name and each.original.values[0].shape == ():
                return each
    return None


def losses_of(comparison: Comparison) -> list[Compared]:
    """Return the scalar losses that scripts differentiate by variables."""
    return [
        each
        for each in comparison.compared
        if each.original.kind == LOSS
        and each.original.name.startswith(FIRST)
        and each.original.name != BY_INPUTS
        and each.original.values[0].shape == ()
    ]


def _curve(comparison: Comparison) -> list[Point]:
    """Return loss and largest difference of each step."""
    differences = comparison.by_step()
    shown = loss_of(comparison)
    points = {} if shown is None else _points(shown)
    return [
        Point(step, *points.get(step, (None, None)), difference=_finite(differences.get(step, 0.0)))
        for step in sorted({*differences, *points})
    ]


def _losses(comparison: Comparison) -> list[Loss]:
    """Return the curve of each loss, if there are several."""
    several = losses_of(comparison)
    return [
        Loss(
            each.original.name,
            each.migrated.name,
            [LossPoint(step, *values) for step, values in _points(each).items()],
        )
        for each in (several if len(several) > 1 else ())
    ]


def _points(loss: Compared) -> dict[int, tuple[float | None, float | None]]:
    """Return the two values of a loss at each step."""
    original, migrated = (
        {value.step: _number(value) for value in stream.values if value.shape == ()}
        for stream in (loss.original, loss.migrated)
    )
    steps = sorted({*original, *migrated})
    return {step: (original.get(step), migrated.get(step)) for step in steps}


def _number(value: Value) -> float | None:
    return None if value.digest[NOT_FINITE] else scalar_of(value.digest)


def _finite(value: float) -> float | None:
    """Return a number for JSON, which has no Inf and no NaN; None stands for them."""
    return value if math.isfinite(value) else None
