"""The parts of a result that the comparison of two recordings has."""

from __future__ import annotations

import math
from typing import Sequence

from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.comparing.comparison import Compared, Comparison, Departure
from npu_shim.rehearsal.comparing.read_recording import Stream
from npu_shim.rehearsal.recording.digest import NOT_FINITE, scalar_from_digest
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
    Metric,
    Point,
    Result,
    StreamPart,
)

_MOST_TENSORS = 100  # of the first step that departs


def add_values(result: Result, comparison: Comparison, elements: Sequence[Element] = ()) -> None:
    """Add what a comparison has to a result.

    Args:
        result: the one to add to.
        comparison: of the two recordings.
        elements: those of the first tensor that departs which differ most.
    """
    first = comparison.first_departure
    result.first_departure = _first_departure_part(comparison, first, elements) if first else None
    result.streams = [
        StreamPart(
            kind=pair.original.kind,
            name=pair.original.name,
            migrated_name=pair.migrated.name,
            dtype=pair.original.dtype,
            shape=list(pair.original.values[0].shape),
            values_original=len(pair.original.values),
            values_migrated=len(pair.migrated.values),
            largest_difference=_finite_or_none(pair.largest_difference),
            first_departure_step=min((d.step for d in pair.departures), default=None),
        )
        for pair in comparison.compared
    ]
    result.curve = _points_by_step(comparison)
    result.losses = _loss_curves(comparison)
    result.metrics = [
        Metric(pair.original.name, number, _number_or_none(a), _number_or_none(b))
        for pair in comparison.compared
        if pair.original.kind in (RESULT, METRIC)
        for number, (a, b) in enumerate(zip(pair.original.values, pair.migrated.values), 1)
        if a.shape == b.shape == ()
    ]
    result.final_variables = [
        FinalVariable(
            pair.original.name,
            list(pair.original.values[-1].shape),
            _finite_or_none(pair.differences[-1][1]) if pair.differences else None,
        )
        for pair in comparison.compared
        if pair.original.kind == FINAL
    ]
    result.undetermined_variables = comparison.undetermined
    result.redefined = comparison.redefined
    result.only_original = _unmatched_names(comparison.matches.only_original)
    result.only_migrated = _unmatched_names(comparison.matches.only_migrated)


def _first_departure_part(comparison: Comparison, first: Departure, elements: Sequence[Element]) -> FirstDeparture:
    same_step = [departure for departure in comparison.departures if departure.step == first.step]
    return FirstDeparture(
        step=first.step,
        kind=first.kind,
        name=first.name,
        values=first.text,
        difference=_finite_or_none(first.difference),
        allowed=first.allowed,
        tensors_departing_there=len(same_step),
        tensors=[
            Departing(
                departure.kind, departure.name, departure.text, _finite_or_none(departure.difference), departure.allowed
            )
            for departure in same_step[:_MOST_TENSORS]
        ],
        elements=list(elements),
    )


def _unmatched_names(streams: Sequence[Stream]) -> list[Alone]:
    return [Alone(stream.kind, stream.name, len(stream.values)) for stream in streams]


def loss_to_show(comparison: Comparison) -> Compared | None:
    """Return what is shown as the loss: a loss, else a log, fetch or summary with this word, else any fetch."""
    several = losses_of(comparison)
    if several:
        return several[0]
    for kind, word in ((LOSS, ""), (LOG, "loss"), (FETCH, "loss"), (SUMMARY, "loss"), (FETCH, "")):
        for pair in comparison.compared:
            if pair.original.kind == kind and word in pair.original.name and pair.original.values[0].shape == ():
                return pair
    return None


def losses_of(comparison: Comparison) -> list[Compared]:
    """Return the scalar losses that scripts differentiate by variables."""
    return [
        pair
        for pair in comparison.compared
        if pair.original.kind == LOSS
        and pair.original.name.startswith(FIRST)
        and pair.original.name != BY_INPUTS
        and pair.original.values[0].shape == ()
    ]


def _points_by_step(comparison: Comparison) -> list[Point]:
    """Return loss and largest difference of each step."""
    differences = comparison.largest_difference_by_step()
    shown = loss_to_show(comparison)
    points = {} if shown is None else _values_by_step(shown)
    return [
        Point(step, *points.get(step, (None, None)), difference=_finite_or_none(differences.get(step, 0.0)))
        for step in sorted({*differences, *points})
    ]


def _loss_curves(comparison: Comparison) -> list[Loss]:
    """Return the curve of each loss, if there are several."""
    several = losses_of(comparison)
    return [
        Loss(
            pair.original.name,
            pair.migrated.name,
            [LossPoint(step, *values) for step, values in _values_by_step(pair).items()],
        )
        for pair in (several if len(several) > 1 else ())
    ]


def _values_by_step(loss: Compared) -> dict[int, tuple[float | None, float | None]]:
    """Return the two values of a loss at each step."""
    original, migrated = (
        {value.step: _number_or_none(value) for value in stream.values if value.shape == ()}
        for stream in (loss.original, loss.migrated)
    )
    steps = sorted({*original, *migrated})
    return {step: (original.get(step), migrated.get(step)) for step in steps}


def _number_or_none(value: Value) -> float | None:
    return None if value.digest[NOT_FINITE] else scalar_from_digest(value.digest)


def _finite_or_none(value: float) -> float | None:
    """Return a number for JSON, which has no Inf and no NaN; None stands for them."""
    return value if math.isfinite(value) else None
