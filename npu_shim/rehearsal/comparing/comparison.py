"""Compare two recordings value by value, and find the first step and the first tensor that departs there."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Collection, Dict, List, NamedTuple

import numpy as np

from npu_shim.rehearsal.comparing import TOLERANCE
from npu_shim.rehearsal.comparing.matching import Matches, match_streams
from npu_shim.rehearsal.comparing.read_recording import Recording, Stream, Value
from npu_shim.rehearsal.comparing.tolerances import (
    Allowance,
    Limits,
    allowed_difference,
    printed_difference,
    relative_difference,
)
from npu_shim.rehearsal.comparing.versions import drop_redefined_values
from npu_shim.rehearsal.comparing.zero_gradients import ZeroGradients
from npu_shim.rehearsal.recording.digest import HEAD, NORM, NOT_FINITE, elements_from_digest, scalar_from_digest
from npu_shim.rehearsal.recording.kinds import (
    FEED,
    FETCH,
    FINAL,
    GRADIENT,
    HOST_KINDS,
    KINDS,
    LOSS,
    METRIC,
    PREDICTION,
    PRINT,
    RATE,
    RESULT,
    SUMMARY,
    TAPE,
    UNTRAINED,
    VARIABLE,
)

# Without a partner, a stream of these kinds is a difference. Others are reported as notes.
_ESSENTIAL = (GRADIENT, VARIABLE, RESULT, METRIC, PREDICTION)
# A session may make several steps in one run, and a migration may change how often a summary is written.
_BY_STEP = (UNTRAINED, SUMMARY)
Updates = Dict[int, List[float]]  # the times of the updates in each step


class Departure(NamedTuple):
    """A value of the migrated script that departs from that of the original.

    Attributes:
        step: the training step.
        kind, name: of the value, as the original names it.
        text: the two values in words.
        difference: relative; infinite for missing values, different shapes, and Inf or NaN in one of them.
        allowed: the difference that is allowed there.
        order: the place among all streams of the original.
        number: the place of the value in its stream; None without a partner.
        updates: the number of updates in this step before the value.
    """

    step: int
    kind: str
    name: str
    text: str
    difference: float
    allowed: float
    order: int
    number: int | None = None
    updates: int = 0

    @property
    def sort_key(self) -> tuple[int, int, int, int, int]:
        """The order of departures: printed ones last, by step, by kind in the order of a training step, by creation.

        If several optimizers update in a step, what comes before an update is ahead of what follows it.
        """
        return int(self.kind == PRINT), self.step, self.updates, KINDS.index(self.kind), self.order


@dataclass
class Compared:
    """Two streams that were compared.

    Attributes:
        original, migrated: the streams.
        differences: step and relative difference of each pair of values.
        departures: the values that depart.
    """

    original: Stream
    migrated: Stream
    differences: list[tuple[int, float]] = field(default_factory=list)
    departures: list[Departure] = field(default_factory=list)

    @property
    def largest_difference(self) -> float:
        """The largest difference."""
        return max((difference for _, difference in self.differences), default=0.0)


@dataclass
class Comparison:
    """The result for two recordings.

    Attributes:
        compared: the pairs of streams.
        matches: the pairing, with the streams that only one of them has.
        departures: all values that depart, the first one first.
        undetermined: the variables whose gradients depart, but are zero but for rounding.
        redefined: texts about values that the versions of TensorFlow define differently. They are not compared.
    """

    compared: list[Compared]
    matches: Matches
    departures: list[Departure]
    undetermined: list[str] = field(default_factory=list)
    redefined: list[str] = field(default_factory=list)

    @property
    def first_departure(self) -> Departure | None:
        """The first value that departs."""
        return self.departures[0] if self.departures else None

    def largest_difference_by_step(self) -> dict[int, float]:
        """Return the largest difference at each step, without printed numbers, among which times may be."""
        largest: dict[int, float] = {}
        for pair in (pair for pair in self.compared if pair.original.kind != PRINT):
            for step, difference in pair.differences:
                largest[step] = max(largest.get(step, 0.0), difference)
        return dict(sorted(largest.items()))

    def has_computed_values(self) -> bool:
        """Return True if there is a value that a run computes; of printed numbers, only those with decimals are."""
        return bool(self.largest_difference_by_step()) or any(
            pair.original.kind == PRINT and not all(map(_is_printed_integer, pair.original.values))
            for pair in self.compared
        )


def compare_recordings(
    original: Recording,
    migrated: Recording,
    tolerance: float = TOLERANCE,
    kinds: Collection[str] = KINDS,
    same_shapes: bool = True,
    limits: Allowance = Limits(),
) -> Comparison:
    """Compare two recordings.

    Args:
        original, migrated: the recordings.
        tolerance: see tolerances.
        kinds: the kinds to compare.
        same_shapes: False to skip values of different shapes instead of reporting them.
        limits: what is allowed beyond the tolerance.
    """
    redefined = drop_redefined_values(original, migrated)
    if original.notes.stopped and migrated.notes.stopped:
        _drop_results_of_begun_step(original, migrated)
    if migrated.notes.on_device:
        kinds = [kind for kind in kinds if kind in HOST_KINDS]
    matches = match_streams(original, migrated)
    pairs = [pair for pair in matches.pairs if pair[0].kind in kinds]
    zero_gradients = ZeroGradients(original, migrated, tolerance)
    updates = _update_times_by_step(original), _update_times_by_step(migrated)
    compared = [
        _compare_streams(one, other, updates, zero_gradients, tolerance, same_shapes, limits) for one, other in pairs
    ]
    departures = [departure for pair in compared for departure in pair.departures]
    for has, lacks, streams, times in (
        ("original", "migrated", matches.only_original, updates[0]),
        ("migrated", "original", matches.only_migrated, updates[1]),
    ):
        for stream in streams:
            if stream.kind in _ESSENTIAL and stream.kind in kinds:
                text = f"only the {has} script has it; the {lacks} one has no partner of this shape"
                departures.append(
                    _with_update_count(_missing_departure(stream, stream.values[0], text), stream.values[0], times)
                )
    departures.sort(key=lambda departure: departure.sort_key)
    return Comparison(compared, matches, departures, zero_gradients.zero_gradient_variables(), redefined)


def _drop_results_of_begun_step(original: Recording, migrated: Recording) -> None:
    """Drop the last results of metrics that only one of two runs has, both of which were stopped after some steps.

    Eager code may update a metric before the gradients of the step that is not wanted. A function does not begin it.
    """
    for stream in original.streams_of_kind(RESULT):
        partner = migrated.streams.get((RESULT, stream.name))
        if partner is not None:
            count = min(len(stream.values), len(partner.values))
            for values, steps in ((stream.values, original.steps), (partner.values, migrated.steps)):
                if all(value.step == steps for value in values[count:]):
                    del values[count:]


def _update_times_by_step(recording: Recording) -> Updates:
    """Return the times of the updates in each step; none with sessions, whose values come at the end of a run."""
    times_by_step: dict[int, set[float]] = {}
    if not recording.streams_of_kind(FEED) and not recording.streams_of_kind(FETCH):
        for stream in recording.streams_of_kind(RATE) + recording.streams_of_kind(GRADIENT):
            for value in stream.values:
                times_by_step.setdefault(value.step, set()).add(value.seconds)
    return {step: sorted(times) for step, times in times_by_step.items()}


def _with_update_count(departure: Departure, value: Value, updates: Updates) -> Departure:
    """Return the departure of a value with the number of updates before it.

    Args:
        departure, value: what departs.
        updates: those of the script that has the value.
    """
    times = updates.get(departure.step, [])
    follows = KINDS.index(departure.kind) > KINDS.index(VARIABLE)  # the training step, and so all of its updates
    return departure._replace(updates=len(times) if follows else bisect_left(times, value.seconds))


def _compare_streams(
    one: Stream,
    other: Stream,
    updates: tuple[Updates, Updates],
    zero_gradients: ZeroGradients,
    tolerance: float,
    same_shapes: bool,
    limits: Allowance,
) -> Compared:
    compared = Compared(one, other)
    largest = 0.0
    pairs = _pairs_of_equal_steps(one, other) if one.kind in _BY_STEP else list(zip(one.values, other.values))
    if one.kind == FINAL:  # of each model or session; the last one counts
        pairs = [(one.values[-1], other.values[-1])]
    if one.kind in (LOSS, TAPE):
        pairs = _without_loss_scale(pairs)
    for place, (a, b) in enumerate(pairs):
        if a.shape != b.shape:
            if same_shapes:
                text = f"shape {list(a.shape)} and {list(b.shape)}"
                compared.departures.append(
                    _with_update_count(_missing_departure(one, a, text)._replace(number=place), a, updates[0])
                )
                compared.differences.append((a.step, float("inf")))
            continue
        largest = max(largest, a.digest[NORM], b.digest[NORM])
        is_line = one.kind == PRINT
        difference = (
            printed_difference(a.digest, b.digest) if is_line else relative_difference(a.digest, b.digest, largest)
        )
        zero_gradients.note_difference(one, a.step, difference)
        dtype = other.dtype if (one.dtype, other.dtype) == ("float64", "float32") else one.dtype
        limit = allowed_difference(dtype, one.kind, a.step, tolerance) * zero_gradients.allowance_factor(one, a.step)
        limit = limits.widened_limit(limit, one, place, a.step)
        if difference > limit and zero_gradients.note_and_explain_departure(one, a, b):
            continue
        compared.differences.append((a.step, difference))
        if difference > limit:
            number = len(one.values) - 1 if one.kind == FINAL else place
            text = _both_values_text(a, b, is_line)
            departure = Departure(a.step, one.kind, one.name, text, difference, limit, one.order, number)
            compared.departures.append(_with_update_count(departure, a, updates[0]))
    if one.kind not in (FINAL, *_BY_STEP) and len(one.values) != len(other.values):
        text = f"{len(one.values)} and {len(other.values)} values"
        longer, times = (one, updates[0]) if len(one.values) > len(other.values) else (other, updates[1])
        value = longer.values[min(len(one.values), len(other.values))]
        compared.departures.append(_with_update_count(_missing_departure(one, value, text), value, times))
    return compared


def _pairs_of_equal_steps(one: Stream, other: Stream) -> list[tuple[Value, Value]]:
    """Return the pairs of values of equal steps."""
    by_step: dict[int, list[Value]] = {}
    for value in other.values:
        by_step.setdefault(value.step, []).append(value)
    return [(value, by_step[value.step].pop(0)) for value in one.values if by_step.get(value.step)]


def _without_loss_scale(pairs: list[tuple[Value, Value]]) -> list[tuple[Value, Value]]:
    """Return the pairs with the second values divided by a loss scale, a power of two that only one script has.

    Before the gradients are unscaled, a loss and its gradients may differ by the scale. What the optimizer applies is
    compared as it is.
    """
    unscaled = []
    for a, b in pairs:
        ratio = b.digest[NORM] / a.digest[NORM] if a.digest[NORM] and b.digest[NORM] else 1.0
        scale = 2.0 ** round(math.log2(ratio)) if math.isfinite(ratio) and ratio else 1.0
        if scale != 1 and abs(ratio / scale - 1) < TOLERANCE:
            digest = b.digest / scale
            digest[NOT_FINITE:HEAD] = b.digest[NOT_FINITE:HEAD]
            b = b._replace(digest=digest)
        unscaled.append((a, b))
    return unscaled


def _missing_departure(stream: Stream, value: Value, text: str) -> Departure:
    return Departure(value.step, stream.kind, stream.name, text, float("inf"), 0.0, stream.order)


def _both_values_text(a: Value, b: Value, is_line: bool) -> str:
    if a.shape == () or is_line:  # the number of a printed line comes first
        return f"{_number_text(a)} and {_number_text(b)}"
    parts = [f"norm {_norm_text(a)} and {_norm_text(b)}"]
    if a.digest[NOT_FINITE] or b.digest[NOT_FINITE]:
        one, other = a.digest[NOT_FINITE], b.digest[NOT_FINITE]
        parts.append(f"Inf or NaN in {one:.0f} and {other:.0f} of {int(np.prod(a.shape))} elements")
    return ", ".join(parts)


def _norm_text(value: Value) -> str:
    """Return the norm, which a digest has of the finite elements."""
    return "Inf or NaN" if value.digest[NOT_FINITE] else f"{value.digest[NORM]:.6g}"


def _is_printed_integer(value: Value) -> bool:
    """Return True for a printed integer, which counts something."""
    elements = elements_from_digest(value.digest, (2,))
    return elements is not None and not elements[1]


def _number_text(value: Value) -> str:
    return "Inf or NaN" if value.digest[NOT_FINITE] else f"{scalar_from_digest(value.digest):.8g}"
