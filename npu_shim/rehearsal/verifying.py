"""Run original and migrated script, compare the recordings, and decide."""

from __future__ import annotations

import math
import os
import re
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Sequence

from npu_shim.rehearsal import deliberate, enlarged, reproducing, result
from npu_shim.rehearsal.comparing import TOLERANCE, comparison as comparing, ranks, seeds, together
from npu_shim.rehearsal.comparing.comparison import Comparison, Departure
from npu_shim.rehearsal.comparing.recording import Recording, read
from npu_shim.rehearsal.comparing.tolerances import Allowance, Limits
from npu_shim.rehearsal.elements import largest_differences
from npu_shim.rehearsal.recording.recorder import CALL, FETCH, FINAL, INITIAL, METRIC, PREDICTION, PRINT, RESULT
from npu_shim.rehearsal.running import Run

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


_MISSING = re.compile(r"ModuleNotFoundError: No module named '(npu_bridge|npu_device|hccl|horovod)[.']")

_FINISHED = re.compile(r"rank (\d+) \(process \d+\) has exited \(its script finished\)")
_MOST_LINES = 10  # of the message of an error; after more lines, the last one says more
_TRIES = 3  # to make a script depart from itself that has threads of its own
Report = Callable[[str], None]
NOTHING_RECORDED = (
    "No training step, log, summary or session run was recorded. Check that the script trains with these arguments."
)
NOTHING_PREDICTED = (
    "No prediction or metric was recorded before the first training step. Pass the arguments with which the script "
    "predicts or evaluates, such as -- --mode=predict."
)
NOTHING_COMPARED = (
    "Nothing was compared, because the script shows nothing to the host. Fetch or print the loss, or save a checkpoint."
)


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison.

    Attributes:
        tolerance: relative, for float32 at the first step.
        seeds: number of pairs of runs; None for one pair with equal random numbers.
        limits: what is allowed beyond the tolerance for two runs in one process each.
        places: returns code and place of each finding of the tool about ranks in the migrated script.
    """

    tolerance: float = TOLERANCE
    seeds: int | None = None
    limits: Allowance = Limits()
    places: Callable[[], Sequence[str]] = tuple


def verify(original: Run, migrated: Run, settings: Settings, report: Report) -> result.Result:
    """Run both scripts and compare them.

    Args:
        original, migrated: the runs; with several seeds, their seed and folder are those of the first pair.
        settings: of the comparison.
        report: prints a line about the progress.
    Returns:
        The result, with the verdict.
    """
    pairs = _pairs(original, migrated, settings.seeds)
    done: list[tuple[list[Recording], list[Recording]]] = []
    parts: list[JsonObject] = []
    for pair in pairs:
        theirs, their_part, apart = _run_migrated(pair[1], settings, report)
        first = deliberate.given(pair[0], theirs)  # what the migrated script does on purpose is known now
        ours, our_part = _run(first, settings, report)
        original = first if pair is pairs[0] else original
        parts += [our_part, their_part]
        done.append((ours, theirs))
    incomplete = [part for part in parts if not part["completed"]]
    problems = [not_completed(part) for part in incomplete]
    if not all(ours and theirs for ours, theirs in done):
        return result.result(result.NOT_RUN, about(settings, original), parts[0], parts[1], None, problems)
    ours, theirs = done[0]
    until = min(part["steps"] for part in parts) if incomplete else None
    compared, differences = _compare(ours, theirs, apart, settings, until)
    changes = deliberate.named(ours)
    again = None
    if differences and not settings.seeds and not incomplete:
        again = deliberate.rounded(original, compared, ours[0].notes.get("half"))
    if again is not None:
        recorded, _ = _run(again, settings, report)
        other, left = _compare(recorded, theirs, apart, settings, None) if recorded else (compared, differences)
        if not left or (recorded and other.first and other.first.kind == PRINT):
            changes += deliberate.named_rounding(again, compared)
            compared, differences, original, ours = other, left, again, recorded
    elements: list[JsonObject] = []
    itself: JsonObject | None = None
    unsteady: list[str] = []
    if differences and not settings.seeds and not incomplete:
        itself, unsteady = _against_itself(compared, original, ours[0], settings.tolerance, report)
        if itself is not None:
            differences = reproducing.sentences(itself)
        elif unsteady:
            differences = _sentences(compared)
    is_rounding = False
    if differences and not settings.seeds and not incomplete and not itself and _may_be_rounding(original, theirs):
        banded = enlarged.within_band(compared, original, ours[0], theirs[0], settings.tolerance, report)
        if banded is not None:
            compared, differences, is_rounding = banded, _sentences(banded), banded.first is None
    if differences and not incomplete and not itself:
        differences += deliberate.unlike(original, theirs)
        differences += _versions(ours[0], theirs[0])
    if differences and not settings.seeds and not incomplete and not itself:
        elements = largest_differences(compared, original, migrated, report)
    bands = []
    if settings.seeds and not incomplete:
        bands = seeds.bands([first[0] for first, _ in done], [ranks.joined(second, first[0]) for first, second in done])
        differences = [_outside(band) for band in bands if not band.is_inside]
        compared = None
    is_empty = bool(theirs[0].notes.get("on_device")) and compared is not None and not compared.has_values()
    lacks_prediction = original.steps == 0 and not _predicts(ours[0])
    if not incomplete and (is_empty or lacks_prediction or not ours[0].streams):
        nothing = NOTHING_PREDICTED if lacks_prediction else NOTHING_RECORDED
        problems.append(NOTHING_COMPARED if is_empty else nothing)
        incomplete = parts
    verdict = result.NOT_RUN if incomplete else result.DIFFER if differences else result.AGREE
    if itself:
        verdict = result.NOT_REPRODUCIBLE
    return result.result(
        verdict,
        about(settings, original),
        parts[0],
        parts[1],
        compared,
        problems + differences,
        bands,
        elements,
        itself,
        unsteady,
        changes,
        is_rounding,
    )


def _predicts(recorded: Recording) -> bool:
    """Return True if a recording has what a trained model returns."""
    kinds = {kind for kind, _ in recorded.streams}
    return not kinds.isdisjoint((PREDICTION, METRIC, RESULT, CALL, FETCH))


def _may_be_rounding(original: Run, theirs: list[Recording]) -> bool:
    """Return True for two scripts that run here, in one process each."""
    return type(original) is Run and len(theirs) == 1


def _against_itself(
    found: Comparison, original: Run, recorded: Recording, tolerance: float, report: Report
) -> tuple[JsonObject | None, list[str]]:
    """Return a departure of the original from itself, and the printed numbers that it does not repeat."""
    first = found.first
    for _ in range(_TRIES):
        again = reproducing.run_again(first, original, report) if first else None
        if first is None or again is None:
            return None, []
        if first.kind == PRINT:
            return None, reproducing.drop_prints(found, recorded, again, tolerance)
        itself = reproducing.departure_from_itself(found, recorded, again, tolerance)
        if itself is not None or not reproducing.may_vary(recorded, again):
            return itself, []
    return None, []


def _run(run: Run, settings: Settings, report: Report) -> tuple[list[Recording], JsonObject]:
    os.makedirs(run.folder, exist_ok=True)
    apart = ", each rank with random numbers of its own" if run.apart is not None else ""
    report(run.starting + (f", seed {run.seed}" if settings.seeds else apart))
    code = run.start()
    recorded = recordings(run)
    return recorded, result.run_part(run, code, recorded)


def _run_migrated(run: Run, settings: Settings, report: Report) -> tuple[list[Recording], JsonObject, list[Recording]]:
    """Run the migrated script; ranks once more, each with random numbers of its own, if they must draw them.

    Returns:
        The recordings whose values are compared, and their part of the result; the recordings that show the work of the
        ranks. They are others if ranks begin with other variables and get those of rank 0 after the first step.
    """
    recorded, part = _run(run, settings, report)
    if run.ranks is None or not part["completed"] or not together.must_draw_apart(recorded):
        return recorded, part, recorded
    again = replace(run, apart=together.global_seeds(recorded[0]), folder=os.path.join(run.folder, "apart"))
    apart, apart_part = _run(again, settings, report)
    if not together.has_broadcast(recorded):
        return apart, apart_part, apart
    return recorded, part, apart if apart_part["completed"] else recorded


def about(settings: Settings, run: Run) -> JsonObject:
    """Return the settings of a comparison for its result.

    Args:
        settings: of the comparison.
        run: the first one of the original.
    """
    return {
        "tolerance": settings.tolerance,
        "seed": run.seed,
        "seeds": settings.seeds,
        "deterministic": run.by_call_site,
        "every": run.every,
        "steps": run.steps,
    }


def _pairs(original: Run, migrated: Run, count: int | None) -> list[tuple[Run, Run]]:
    if count is None:
        return [(original, migrated)]
    return [
        (
            replace(original, seed=seed, by_call_site=False, folder=os.path.join(original.folder, f"seed_{seed}")),
            replace(migrated, seed=seed, by_call_site=False, folder=os.path.join(migrated.folder, f"seed_{seed}")),
        )
        for seed in range(original.seed, original.seed + count)
    ]


def recordings(run: Run) -> list[Recording]:
    """Return the recordings of all ranks of a run that has ended.

    An empty list if one is missing, because its process never started.
    """
    try:
        return [read(folder) for folder in run.recordings()]
    except OSError:
        return []


def _compare(
    ours: list[Recording], theirs: list[Recording], apart: list[Recording], settings: Settings, until: int | None
) -> tuple[Any, list[str]]:
    """Compare the runs, up to step ``until`` if one of them failed. Values of that step may be missing.

    The ranks of ``apart`` are those of which the work together is judged.
    """
    among, sentences = [], together.saved_twice(apart)
    if len(theirs) == 1:
        found = comparing.compare(ours[0], theirs[0], settings.tolerance, limits=settings.limits)
    else:
        found = ranks.compare_with_one(ours[0], theirs, settings.tolerance)
    if len(theirs) > 1 and until is None:
        among = ranks.compare_ranks(theirs, settings.tolerance)
        sentences += together.faults(ours[0], apart, settings.places)
        if sentences or among or found.departures:
            sentences += together.causes(ours[0], apart, not among, settings.places)
    if until is not None:
        found.departures = [
            each
            for each in found.departures
            if each.kind != FINAL and (each.step < until or (each.step == until and each.number is not None))
        ]
        # A script that failed lacks what it did not reach.
        found.matches = found.matches._replace(only_original=[], only_migrated=[])
    return found, sentences + _sentences(found) + [_rank_sentence(rank, each.departures[0]) for rank, each in among]


def _sentences(found: Comparison) -> list[str]:
    first = found.first
    if first is None:
        return []
    sentences = [f"The first difference is at step {first.step}: {first.kind} {first.name!r}, {first.text}."]
    if first.kind == INITIAL:
        sentences.append("Versions and devices draw other random numbers. Compare with --initial-variables.")
    before = max((value for step, value in found.by_step().items() if step < first.step), default=0.0)
    if before:
        sentences.append(
            f"Before it, values differ by up to {before:.1e}. A ReLU or a maximum can enlarge rounding at once. If the "
            "migrated script rounds differently on purpose, raise --tolerance."
        )
    return sentences


def _versions(ours: Recording, theirs: Recording) -> list[str]:
    one, other = [each.notes.get("tensorflow") for each in (ours, theirs)]
    if one == other:
        return []
    return [f"The recording is of TensorFlow {one}, the migrated script ran with {other}. Versions may differ, too."]


def _rank_sentence(rank: int, first: Departure) -> str:
    return f"Rank {rank} departs from rank 0 at step {first.step}: {first.kind} {first.name!r}, {first.text}."


def _outside(band: seeds.Band) -> str:
    beyond = "of which one is not finite" if math.isnan(band.band) else f"outside the band of {band.band:.2g}"
    return f"{band.kind} {band.name!r}: the means are {band.original:.6g} and {band.migrated:.6g}, {beyond}."


def not_completed(part: JsonObject) -> str:
    """Return a sentence about a run that did not end as it should."""
    with open(part["log"], encoding="utf-8", errors="replace") as stream:
        output = stream.read()
    return (
        f"{part['script']} ended with exit code {part['exit_code']} after {part['steps']} recorded steps. "
        f"{_last_line(output)}{_missing_package(output)}{_early_rank(output)}See its output in {part['log']}."
    )


def _last_line(output: str) -> str:
    """Return a sentence with the error that ends the output of a script, or else with the last line that it printed."""
    _, mark, rest = output.strip().rpartition("Traceback (most recent call last):\n")
    lines = rest.splitlines()
    message = [number for number, line in enumerate(lines) if not line.startswith((" ", "\t"))][:1]
    if mark and message and len(lines) - message[0] <= _MOST_LINES:
        return f"Its error: {_short(' '.join(lines[message[0] :]))}. "
    return f"Its last line: {_short(lines[-1])}. " if lines else ""


def _short(text: str) -> str:
    return textwrap.shorten(text, 300).rstrip(".")


def _early_rank(output: str) -> str:
    """Return the fix for a rank that makes fewer steps than one that waits for it; an empty string for others."""
    found = _FINISHED.search(output)
    if found is None:
        return ""
    return f"Rank {found.group(1)} finishes before another rank: give all the same number of steps. "


def _missing_package(output: str) -> str:
    """Return the fix for a script that imports a package which npu_shim can serve; an empty string for others."""
    found = _MISSING.search(output)
    if found is None:
        return ""
    return f"{found.group(1)} is not installed: set NPU_SHIM_ALIAS=1, and npu_shim serves it. "
