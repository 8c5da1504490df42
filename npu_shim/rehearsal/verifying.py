"""Run original and migrated script, compare the recordings, and decide."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Callable, NamedTuple, Sequence, TypeVar

from npu_shim.import_hook.outside_files import outside_sentence, paths_text
from npu_shim.import_hook.project_files import project_root
from npu_shim.rehearsal import deliberate_changes, enlarged, reproducing
from npu_shim.rehearsal.comparing import TOLERANCE, comparison as comparing, ranks, seeds, together
from npu_shim.rehearsal.comparing.comparison import Comparison, Departure
from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.comparing.tolerances import Allowance, Limits
from npu_shim.rehearsal.elements import rerun_for_largest_differences
from npu_shim.rehearsal.failures import Ended, NotRepeated, failure_sentences, run_again, run_to_end
from npu_shim.rehearsal.recording.kinds import CALL, FETCH, FINAL, INITIAL, METRIC, PREDICTION, PRINT, RESULT
from npu_shim.rehearsal.recording.settings import Race
from npu_shim.rehearsal.result import (
    AGREE,
    DIFFER,
    NOT_REPRODUCIBLE,
    NOT_RUN,
    Change,
    Element,
    Itself,
    MeanBand,
    Result,
    RunPart,
    Terms,
)
from npu_shim.rehearsal.result_values import add_values
from npu_shim.rehearsal.running import Run

_NO_ERROR = "no error"
_TRIES = 3  # to make a script depart from itself that has threads of its own, or a race that nothing can order
_Ended = TypeVar("_Ended", bound=tuple)
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
FAILED_LATER = "After the last step {0} ended with {1}, and the migrated script with {2}. Its output is in {3}."
FILES_OF_ORIGINAL = (
    "The migrated script imported files of the original, which compare with themselves: {0}. "
    "Let its search path name folders of {1}."
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


def verify(original: Run, migrated: Run, settings: Settings, report: Report) -> Result:
    """Run both scripts and compare them.

    Args:
        original, migrated: the runs; with several seeds, their seed and folder are those of the first pair.
        settings: of the comparison.
        report: prints a line about the progress.
    Returns:
        The result, with the verdict.
    """
    return _Verification(original, migrated, settings, report).compare_runs()


class _Verification:
    """The runs of a pair of scripts, their comparison, and what explains a difference."""

    def __init__(self, original: Run, migrated: Run, settings: Settings, report: Report) -> None:
        self.original, self.migrated, self.settings, self.report = original, migrated, settings, report
        self.parts: list[RunPart] = []
        self.problems: list[str] = []
        self.differences: list[str] = []
        self.changes: list[Change] = []
        self.elements: list[Element] = []
        self.bands: list[MeanBand] = []
        self.again = _OriginalAgain()
        self.compared: Comparison | None = None
        self.until: int | None = None
        self.forced_order: list[str] = []
        self.is_rounding = False
        self.unconverted: list[str] = []

    def compare_runs(self) -> Result:
        """Run and compare; return the result."""
        pairs = _run_pairs_by_seed(self.original, self.migrated, self.settings.seeds)
        done: list[tuple[list[Recording], list[Recording]]] = []
        for pair in pairs:
            theirs, their_part, apart = _run_migrated(pair[1], self.settings, self.report)
            # What the migrated script does on purpose is known now.
            first = deliberate_changes.run_with_deliberate_changes(pair[0], theirs)
            ours, our_part = _run_and_report(first, self.settings, self.report)
            self.original = first if pair is pairs[0] else self.original
            self.parts += [our_part, their_part]
            done.append((ours, theirs))
        self.unconverted = _unconverted_sentences(pairs[0][1], done[0][1])
        incomplete = [part for part in self.parts if not part.completed]
        self.problems = [failure_sentences(part) for part in incomplete] or self._failure_of_one(done)
        if not all(ours and theirs for ours, theirs in done):
            return self._make_result(NOT_RUN)
        ours, theirs = done[0]
        self.until = (
            min(part.steps for part in self.parts)
            if incomplete
            else _steps_of_shorter_run(self.original, self.migrated)
        )
        self.compared, self.differences = _compare_ranks_or_runs(ours, theirs, apart, self.settings, self.until)
        self.changes = deliberate_changes.deliberate_changes_given_to(ours)
        if self.settings.seeds and not incomplete:
            averaged = [ranks.mean_recording_of_ranks(second, first[0]) for first, second in done]
            self.bands = seeds.mean_bands([first[0] for first, _ in done], averaged)
            self.differences = [_outside_band_sentence(band) for band in self.bands if not band.inside]
            self.compared = None
        elif self.differences and not incomplete:
            try:
                self._explain_difference(self.compared, ours[0], theirs, apart)
            except NotRepeated as failure:
                self.problems.append(str(failure))
        nothing = _nothing_compared_sentence(self.original, self.compared, ours[0], theirs[0])
        if nothing and not incomplete:
            self.problems.append(nothing)
        if self.problems:
            return self._make_result(NOT_RUN)
        if self.again.departure:
            return self._make_result(NOT_REPRODUCIBLE)
        return self._make_result(DIFFER if self.differences else AGREE)

    def _failure_of_one(self, done: Sequence[tuple[list[Recording], list[Recording]]]) -> list[str]:
        """Return a sentence if only one script failed after training that was ended before its time; report both."""
        for pair in done:
            original, migrated = (
                " or ".join(sorted({recording.notes.failed or _NO_ERROR for recording in recordings}))
                for recordings in pair
            )
            if original != migrated:
                return [FAILED_LATER.format(self.original.script, original, migrated, self.parts[1].log)]
            if original != _NO_ERROR:
                self.report(f"both scripts ended with {original} after the last step. They are compared until there")
        return []

    def _explain_difference(
        self, compared: Comparison, ours: Recording, theirs: list[Recording], with_own_seeds: list[Recording]
    ) -> None:
        """Look for what explains a difference: rounding, and an original that departs from itself.

        Raises:
            NotRepeated: if a script ends otherwise when it runs again.
        """
        rounded = deliberate_changes.run_with_rounding_rules(self.original, compared, ours.notes.half)
        if rounded is not None:
            self.report(rounded.run_text)
            again = run_again(rounded)
            other, left = _compare_ranks_or_runs([again], theirs, with_own_seeds, self.settings, self.until)
            if not left or (other.first_departure and other.first_departure.kind == PRINT):
                self.changes += deliberate_changes.rounding_changes(rounded, compared)
                self.original, ours, self.compared, self.differences = rounded, again, other, left
                compared = other
        if not self.differences:
            return
        tolerance = self.settings.tolerance
        self.again = _departure_of_original(compared, self.original, ours, tolerance, self.report)
        if self.again.races:
            self._compare_in_forced_order(ours, theirs, with_own_seeds)
            return
        if self.again.departure is not None:
            self.differences = reproducing.departure_sentences(self.again.departure)
            return
        if self.again.unsteady_prints:
            self.differences = _first_difference_sentences(compared)
        # a recording cannot run again; and what else is wrong, as with the work of ranks, is no rounding
        if type(self.original) is Run and self.differences == _first_difference_sentences(compared):
            banded = enlarged.compare_within_band(compared, self.original, ours, theirs, tolerance, self.report)
            if banded is not None:
                self.compared = compared = banded
                self.differences, self.is_rounding = _first_difference_sentences(banded), banded.first_departure is None
        if self.differences:
            self.differences += deliberate_changes.missing_change_sentences(
                self.original, theirs
            ) + _different_versions_sentences(ours, theirs[0])
            self.elements = rerun_for_largest_differences(compared, self.original, self.migrated, self.report)

    def _compare_in_forced_order(
        self, ours: Recording, theirs: list[Recording], with_own_seeds: list[Recording]
    ) -> None:
        """Compare with the reads of the original's races before their update, and explain what differs then.

        If a script does not run to its end so, compare without.

        Raises:
            NotRepeated: if a script ends otherwise when it runs again.
        """
        original, ended = _run_in_forced_order(
            self.original, self.again.races, None, lambda run: _run_and_report(run, self.settings, self.report)
        )
        assert original.ordered is not None
        variables = [race.variable for race in original.ordered]
        migrated, (others, part, others_apart) = _run_in_forced_order(
            self.migrated, original.ordered, variables, lambda run: _run_migrated(run, self.settings, self.report)
        )
        if ended.part.completed and part.completed:
            self.original, self.migrated = original, migrated
            ours, theirs, with_own_seeds = ended.recordings[0], others, others_apart
            self.forced_order = reproducing.forced_order_sentences(original.ordered)
            self.compared, self.differences = _compare_ranks_or_runs(
                [ours], theirs, with_own_seeds, self.settings, self.until
            )
        else:
            self.original = replace(self.original, ordered=())
        if self.differences:
            assert self.compared is not None
            self._explain_difference(self.compared, ours, theirs, with_own_seeds)

    def _make_result(self, verdict: str) -> Result:
        result = Result(
            verdict,
            comparison_terms(self.settings, self.original),
            self.parts[0],
            self.parts[1],
            problems=self.problems + self.differences + self.unconverted,
            deliberate=self.changes,
            itself=self.again.departure,
            unsteady_prints=list(self.again.unsteady_prints),
            enlarged_rounding=self.is_rounding,
            forced_order=self.forced_order,
            bands=self.bands,
        )
        if self.compared is not None:
            add_values(result, self.compared, self.elements)
        return result


def _unconverted_sentences(migrated: Run, recordings: Sequence[Recording]) -> list[str]:
    """Return the sentence about files that the migrated script imported without conversion, if there are such files."""
    outside = recordings[0].notes.outside if recordings else ()
    if not outside:
        return []
    if migrated.moved_to is None:
        root = os.path.abspath(migrated.project or project_root(migrated.script))
        sentence = outside_sentence("convert", root, outside, "--project")
        return [f"{sentence[0].upper()}{sentence[1:]}."]
    return [FILES_OF_ORIGINAL.format(paths_text(outside), migrated.moved_to)]


def _steps_of_shorter_run(original: Run, migrated: Run) -> int | None:
    """Return the steps of a migrated script that ends before the original does; None if neither is cut short."""
    is_shorter = migrated.steps and (original.steps is None or migrated.steps < original.steps)
    return migrated.steps if is_shorter else None


def _nothing_compared_sentence(
    original: Run, compared: Comparison | None, ours: Recording, theirs: Recording
) -> str | None:
    """Return a sentence if nothing was recorded or compared."""
    if theirs.notes.on_device and compared is not None and not compared.has_computed_values():
        return NOTHING_COMPARED
    if original.steps == 0 and not _has_predictions(ours):
        return NOTHING_PREDICTED
    return None if ours.streams else NOTHING_RECORDED


def _has_predictions(recorded: Recording) -> bool:
    """Return True if a recording has what a trained model returns."""
    kinds = {kind for kind, _ in recorded.streams}
    return not kinds.isdisjoint((PREDICTION, METRIC, RESULT, CALL, FETCH))


class _OriginalAgain(NamedTuple):
    """The departure of an original from itself, the printed numbers that it does not repeat, and races to order."""

    departure: Itself | None = None
    unsteady_prints: Sequence[str] = ()
    races: Sequence[Race] = ()


def _departure_of_original(
    comparison: Comparison, original: Run, recorded: Recording, tolerance: float, report: Report
) -> _OriginalAgain:
    """Run the original again, and compare it with itself."""
    first = comparison.first_departure
    for _ in range(_TRIES):
        if first is None or not original.can_repeat:
            break
        again = reproducing.rerun_original(first, original, report)
        if first.kind == PRINT:
            prints = reproducing.drop_varying_prints(comparison, recorded, again, tolerance)
            return _OriginalAgain(unsteady_prints=prints)
        races = [race for race in again.notes.races if race.waits]
        if races and type(original) is Run and original.ordered is None and not again.notes.on_device:
            return _OriginalAgain(races=races)
        departure = reproducing.departure_from_itself(comparison, recorded, again, tolerance)
        if departure is not None or not (recorded.notes.may_vary or again.notes.may_vary):
            return _OriginalAgain(departure)
    return _OriginalAgain()


def _run_in_forced_order(
    run: Run, races: Sequence[Race], variables: Sequence[str] | None, start: Callable[[Run], _Ended]
) -> tuple[Run, _Ended]:
    """Run a script with the reads of races before the update; once more if it has other ones.

    Args:
        run: of the script.
        races: of the original.
        variables: those of which other races are ordered, too; None for all.
        start: runs it, and returns its recordings first.
    Returns:
        The run, and what ``start`` returns.
    """
    ordered = replace(run, ordered=races, folder=os.path.join(run.folder, "ordered"), whole=None)
    ended = start(ordered)
    recordings: list[Recording] = ended[0]
    more = [
        race
        for recording in recordings[:1]
        for race in recording.notes.races
        if race.waits and (variables is None or race.variable in variables)
    ]
    if not more:
        return ordered, ended
    ordered = replace(ordered, ordered=[*races, *more])
    return ordered, start(ordered)


def _run_and_report(run: Run, settings: Settings, report: Report) -> Ended:
    apart = ", each rank with random numbers of its own" if run.apart is not None else ""
    report(run.run_text + (f", seed {run.seed}" if settings.seeds else apart))
    return run_to_end(run)


def _run_migrated(run: Run, settings: Settings, report: Report) -> tuple[list[Recording], RunPart, list[Recording]]:
    """Run the migrated script; ranks once more, each with random numbers of its own, if they must draw them.

    Returns:
        The recordings whose values are compared, and their part of the result; the recordings that show the work of the
        ranks. They are others if ranks begin with other variables and get those of rank 0 after the first step.
    """
    recorded, part = _run_and_report(run, settings, report)
    if run.ranks is None or not part.completed or not together.needs_random_numbers_by_rank(recorded):
        return recorded, part, recorded
    again = replace(run, apart=together.global_seeds(recorded[0]), folder=os.path.join(run.folder, "apart"))
    apart, apart_part = _run_and_report(again, settings, report)
    if apart_part.completed and together.has_broadcast(recorded):
        return recorded, part, apart
    return apart, apart_part, apart


def comparison_terms(settings: Settings, run: Run) -> Terms:
    """Return the settings of a comparison for its result.

    Args:
        settings: of the comparison.
        run: the first one of the original.
    """
    return Terms(settings.tolerance, run.seed, settings.seeds, run.by_call_site, run.every, run.steps)


def _run_pairs_by_seed(original: Run, migrated: Run, count: int | None) -> list[tuple[Run, Run]]:
    if count is None:
        return [(original, migrated)]
    return [
        (
            replace(original, seed=seed, by_call_site=False, folder=os.path.join(original.folder, f"seed_{seed}")),
            replace(migrated, seed=seed, by_call_site=False, folder=os.path.join(migrated.folder, f"seed_{seed}")),
        )
        for seed in range(original.seed, original.seed + count)
    ]


def _compare_ranks_or_runs(
    ours: list[Recording],
    theirs: list[Recording],
    with_own_seeds: list[Recording],
    settings: Settings,
    until: int | None,
) -> tuple[Comparison, list[str]]:
    """Compare the runs, up to step ``until`` if one of them ends before. Values of that step may be missing.

    The ranks of ``with_own_seeds`` are those of which the work together is judged.
    """
    among, sentences = [], together.double_checkpoint_sentences(with_own_seeds)
    if len(theirs) == 1:
        comparison = comparing.compare_recordings(ours[0], theirs[0], settings.tolerance, limits=settings.limits)
    else:
        comparison = ranks.compare_with_one(ours[0], theirs, settings.tolerance)
    if len(theirs) > 1 and until is None:
        among = ranks.compare_ranks(theirs, settings.tolerance)
        sentences += together.fault_sentences(ours[0], with_own_seeds, settings.places)
        if sentences or among or comparison.departures:
            sentences += together.cause_sentences(ours[0], with_own_seeds, not among, settings.places)
    if until is not None:
        comparison.departures = [
            departure
            for departure in comparison.departures
            if departure.kind != FINAL
            and (departure.step < until or (departure.step == until and departure.number is not None))
        ]
        # A script that ends before lacks what it did not reach.
        comparison.matches = comparison.matches._replace(only_original=[], only_migrated=[])
    return comparison, sentences + _first_difference_sentences(comparison) + [
        _rank_sentence(rank, other.departures[0]) for rank, other in among
    ]


def _first_difference_sentences(comparison: Comparison) -> list[str]:
    first = comparison.first_departure
    if first is None:
        return []
    sentences = [f"The first difference is at step {first.step}: {first.kind} {first.name!r}, {first.text}."]
    if first.kind == INITIAL:
        sentences.append("Versions and devices draw other random numbers. Compare with --initial-variables.")
    before = max(
        (value for step, value in comparison.largest_difference_by_step().items() if step < first.step), default=0.0
    )
    if before:
        sentences.append(
            f"Before it, values differ by up to {before:.1e}. A ReLU or a maximum can enlarge rounding at once. If the "
            "migrated script rounds differently on purpose, raise --tolerance."
        )
    return sentences


def _different_versions_sentences(ours: Recording, theirs: Recording) -> list[str]:
    one, other = [recording.notes.tensorflow for recording in (ours, theirs)]
    if one == other:
        return []
    return [f"The recording is of TensorFlow {one}, the migrated script ran with {other}. Versions may differ, too."]


def _rank_sentence(rank: int, first: Departure) -> str:
    return f"Rank {rank} departs from rank 0 at step {first.step}: {first.kind} {first.name!r}, {first.text}."


def _outside_band_sentence(band: MeanBand) -> str:
    beyond = "of which one is not finite" if band.band is None else f"outside the band of {band.band:.2g}"
    ours, theirs = ("nan" if mean is None else f"{mean:.6g}" for mean in (band.original, band.migrated))
    return f"{band.kind} {band.name!r}: the means are {ours} and {theirs}, {beyond}."
