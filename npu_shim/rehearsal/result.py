"""The result of ``npu-shim verify`` as data. docs/verify.schema.json describes it; the reports are made from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, Sequence

import npu_shim
from npu_shim.rehearsal.comparing.comparison import Compared, Comparison, Departure
from npu_shim.rehearsal.comparing.recording import Recording, Stream
from npu_shim.rehearsal.comparing.seeds import Band
from npu_shim.rehearsal.recording.digest import NOT_FINITE, scalar_of
from npu_shim.rehearsal.recording.kinds import FETCH, FINAL, LOG, LOSS, METRIC, RESULT, SUMMARY
from npu_shim.rehearsal.recording.losses import BY_INPUTS, FIRST
from npu_shim.rehearsal.running import Run

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject, Value


AGREE, DIFFER, NOT_REPRODUCIBLE, NOT_RUN = "agree", "differ", "not reproducible", "not run"
Result = Dict[str, Any]
_MOST_TENSORS = 100  # of the first step that departs


def run_part(run: Run, code: int, recordings: Sequence[Recording]) -> JsonObject:
    """Return the part of a result about one script.

    Args:
        run: the run.
        code: its exit code.
        recordings: of its ranks; empty if the process has not started the script.
    """
    ends = [recording.end for recording in recordings]
    peaks = [end["peak_bytes"] for end in ends if end]
    times = [recording.seconds_per_step for recording in recordings]
    return {
        "script": run.script,
        "arguments": list(run.arguments),
        "converted_in_memory": run.convert is not None,
        "ranks": run.ranks or 1,
        "exit_code": code,
        "completed": bool(ends) and code == 0 and all(end.get("ended") == "returned" for end in ends),
        "steps": recordings[0].steps if recordings else 0,
        "seconds": ends[0].get("seconds") if ends else None,
        "seconds_per_step": times[0] if times else None,
        "peak_bytes": max(peaks) if peaks else None,
        "python": recordings[0].start.get("python") if recordings else None,
        "tensorflow": recordings[0].notes.get("tensorflow") if recordings else None,
        "log": run.log,
        "restored": list(recordings[0].restored) if recordings else [],
    }


def result(
    verdict: str,
    settings: JsonObject,
    original: JsonObject,
    migrated: JsonObject,
    comparison: Comparison | None = None,
    problems: Sequence[str] = (),
    bands: Sequence[Band] = (),
    elements: Sequence[JsonObject] = (),
    itself: JsonObject | None = None,
    unsteady: Sequence[str] = (),
    deliberate: Sequence[JsonObject] = (),
    enlarged: bool = False,
) -> Result:
    """Return the result.

    Args:
        verdict: AGREE, DIFFER, NOT_REPRODUCIBLE or NOT_RUN.
        settings: of the comparison.
        original, migrated: of run_part().
        comparison: of the two recordings; None if a script did not start.
        problems: sentences, each about one difference or failure.
        bands: of several seeds.
        elements: those of the first tensor that departs which differ most.
        itself: the departure of the original from itself.
        unsteady: the printed numbers that the original does not repeat.
        deliberate: the changes that both scripts have, because the migration makes them on purpose.
        enlarged: True if the scripts depart no further than rounding lets the original depart from itself.
    """
    made: Result = {
        "schema_version": 1,
        "tool": "npu-shim verify",
        "tool_version": npu_shim.__version__,
        "verdict": verdict,
        "settings": settings,
        "original": original,
        "migrated": migrated,
        "problems": list(problems),
        "deliberate": list(deliberate),
        "first_departure": None,
        "itself": itself,
        "unsteady_prints": list(unsteady),
        "enlarged_rounding": enlarged,
        "streams": [],
        "curve": [],
        "losses": [],
        "metrics": [],
        "final_variables": [],
        "undetermined_variables": [],
        "redefined": [],
        "only_original": [],
        "only_migrated": [],
        "bands": [
            {
                "kind": each.kind,
                "name": each.name,
                "original": _finite(each.original),
                "migrated": _finite(each.migrated),
                "band": _finite(each.band),
                "inside": each.is_inside,
            }
            for each in bands
        ],
    }
    if comparison is not None:
        made.update(_compared(comparison))
    if made["first_departure"]:
        made["first_departure"]["elements"] = list(elements)
    return made


def _compared(comparison: Comparison) -> JsonObject:
    first = comparison.first
    return {
        "first_departure": _first(comparison, first) if first else None,
        "streams": [
            {
                "kind": each.original.kind,
                "name": each.original.name,
                "migrated_name": each.migrated.name,
                "dtype": each.original.dtype,
                "shape": list(each.original.values[0].shape),
                "values_original": len(each.original.values),
                "values_migrated": len(each.migrated.values),
                "largest_difference": _finite(each.largest),
                "first_departure_step": min((d.step for d in each.departures), default=None),
            }
            for each in comparison.compared
        ],
        "curve": _curve(comparison),
        "losses": _losses(comparison),
        "metrics": [
            {
                "name": each.original.name,
                "number": number,
                "original": _number(a),
                "migrated": _number(b),
            }
            for each in comparison.compared
            if each.original.kind in (RESULT, METRIC)
            for number, (a, b) in enumerate(zip(each.original.values, each.migrated.values), 1)
            if a.shape == b.shape == ()
        ],
        "final_variables": [
            {
                "name": each.original.name,
                "shape": list(each.original.values[-1].shape),
                "difference": _finite(each.differences[-1][1]) if each.differences else None,
            }
            for each in comparison.compared
            if each.original.kind == FINAL
        ],
        "undetermined_variables": comparison.undetermined,
        "redefined": comparison.redefined,
        "only_original": _names(comparison.matches.only_original),
        "only_migrated": _names(comparison.matches.only_migrated),
    }


def _first(comparison: Comparison, first: Departure) -> JsonObject:
    same_step = [each for each in comparison.departures if each.step == first.step]
    return {
        "step": first.step,
        "kind": first.kind,
        "name": first.name,
        "values": first.text,
        "difference": _finite(first.difference),
        "allowed": first.allowed,
        "tensors_departing_there": len(same_step),
        "tensors": [
            {
                "kind": each.kind,
                "name": each.name,
                "values": each.text,
                "difference": _finite(each.difference),
                "allowed": each.allowed,
            }
            for each in same_step[:_MOST_TENSORS]
        ],
    }


def _names(streams: Sequence[Stream]) -> list[JsonObject]:
    return [{"kind": each.kind, "name": each.name, "values": len(each.values)} for each in streams]


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


def _curve(comparison: Comparison) -> list[JsonObject]:
    """Return loss and largest difference of each step."""
    differences = comparison.by_step()
    shown = loss_of(comparison)
    points = {} if shown is None else _points(shown)
    empty = {"original": None, "migrated": None}
    return [
        {"step": step, **points.get(step, empty), "difference": _finite(differences.get(step, 0.0))}
        for step in sorted({*differences, *points})
    ]


def _losses(comparison: Comparison) -> list[JsonObject]:
    """Return the curve of each loss, if there are several."""
    several = losses_of(comparison)
    return [
        {
            "name": each.original.name,
            "migrated_name": each.migrated.name,
            "curve": [{"step": step, **point} for step, point in _points(each).items()],
        }
        for each in (several if len(several) > 1 else ())
    ]


def _points(loss: Compared) -> dict[int, dict[str, float | None]]:
    """Return the two values of a loss at each step."""
    original, migrated = (
        {value.step: _number(value) for value in stream.values if value.shape == ()}
        for stream in (loss.original, loss.migrated)
    )
    steps = sorted({*original, *migrated})
    return {step: {"original": original.get(step), "migrated": migrated.get(step)} for step in steps}


def _number(value: Value) -> float | None:
    return None if value.digest[NOT_FINITE] else scalar_of(value.digest)


def _finite(value: float) -> float | None:
    """Return a number for JSON, which has no Inf and no NaN; None stands for them."""
    return value if math.isfinite(value) else None
