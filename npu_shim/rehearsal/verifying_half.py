"""Run a script in half precision and in float32, and decide if they differ by more than rounding."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Sequence

from npu_shim.rehearsal import deliberate_changes, verifying
from npu_shim.rehearsal.comparing import half_band
from npu_shim.rehearsal.comparing.comparison import Comparison, compare_recordings
from npu_shim.rehearsal.comparing.half_band import ANY
from npu_shim.rehearsal.comparing.read_recording import Recording, drop_overflows
from npu_shim.rehearsal.elements import rerun_for_largest_differences
from npu_shim.rehearsal.failures import Ended, NotRepeated, failure_sentences, run_to_end
from npu_shim.rehearsal.half_result import half_part_without_band
from npu_shim.rehearsal.half_run import Half, HalfReport, HalfRun
from npu_shim.rehearsal.half_values import add_bands
from npu_shim.rehearsal.recording.kinds import KINDS, PRINT
from npu_shim.rehearsal.result import AGREE, DIFFER, NOT_RUN, Result
from npu_shim.rehearsal.result_values import add_values
from npu_shim.rehearsal.running import Run
from npu_shim.rehearsal.verifying import Report, Settings

PERTURBED = "perturbed_"  # and a number: the folder of a run, and of its dumps
_LOST = 5  # skipped steps in a row at the end, after which a loss scale counts as lost
_KINDS = tuple(kind for kind in KINDS if kind != PRINT)  # printed numbers are those of other values


def verify_half(original: Run, migrated: Run, settings: Settings, half: Half, report: Report) -> Result:
    """Run the migrated script in half precision and the original in float32, and compare them within the band.

    The float32 run skips the steps that the loss scale skips in half precision.

    Args:
        original, migrated: the runs.
        settings: of the comparison.
        half: of half precision.
        report: prints a line about the progress.
    Returns:
        The result, with the verdict.
    """
    report(f"running {migrated.script} in {half.dtype}")
    rounded = replace(migrated, half=HalfRun(half.precision) if half.report is None else None)
    of_rounded, part = run_to_end(rounded, half.dtype)
    report(f"{original.run_text} in float32")
    theirs = of_rounded[0] if of_rounded else None
    original = deliberate_changes.run_with_deliberate_changes(original, of_rounded)
    exact = replace(original, half=HalfRun(half.precision, 0.0, theirs.skips if theirs else []))
    of_exact, exact_part = run_to_end(exact, "float32")
    half_report = half.report or (theirs.end.half if theirs and theirs.end else None)
    result = Result(NOT_RUN, verifying.comparison_terms(settings, original), exact_part, part)
    if not of_exact or theirs is None or not half_report:
        result.problems = [failure_sentences(run) for run in (exact_part, part) if not run.completed]
        result.problems = result.problems or [
            f"{migrated.script} did not import TensorFlow. Give the script that trains."
        ]
        return result
    pair = _Pair(exact, rounded, of_exact[0], theirs, half_report, half)
    # Without a complete run and ops in 16 bits there is nothing to compare.
    perturbed = pair.make_perturbed_runs(report) if exact_part.completed and half_report.ops else []
    parts = [exact_part, part, *(run.part for run in perturbed)]
    result.problems = [failure_sentences(run) for run in parts if not run.completed] + pair.problem_sentences()
    return pair.compare_within_band(
        result, [run.recordings[0] for run in perturbed if run.recordings], settings, report
    )


@dataclass(frozen=True)
class _Pair:
    """The run in float32 and the one in half precision, their recordings, and what the second reports at its end."""

    exact: Run
    rounded: Run
    ours: Recording
    theirs: Recording
    half_report: HalfReport
    half: Half

    @property
    def perturbs_all_ops(self) -> bool:
        """True if a perturbed run perturbs all ops in 16 bits, because none is a convolution or matrix product."""
        return not self.half_report.matrix_casts

    @property
    def perturbation_size(self) -> float:
        """The size of the perturbation."""
        report = self.half_report
        return half_band.perturbation_size(
            self.half.dtype, report.ops, report.casts if self.perturbs_all_ops else report.matrix_casts
        )

    def make_perturbed_runs(self, report: Report) -> list[Ended]:
        """Make the perturbed runs."""
        runs, original, half = [], self.exact, self.half
        for number in range(1, half.perturbed + 1):
            report(f"{original.run_text} in float32, perturbed ({number} of {half.perturbed})")
            name = f"{PERTURBED}{number}"
            folder = os.path.join(original.folder, name)
            dumping = original.dumping and original.dumping.in_subfolder(name)
            given = HalfRun(
                half.precision, self.perturbation_size, self.theirs.skips, original.seed + number, self.perturbs_all_ops
            )
            runs.append(run_to_end(replace(original, folder=folder, dumping=dumping, half=given), "float32"))
        return runs

    def problem_sentences(self) -> list[str]:
        """Return sentences about runs that completed and cannot be compared."""
        dtype, skips, sentences = self.half.dtype, self.theirs.skips, []
        if not self.half_report.ops:
            sentences.append(
                f"No float32 op of {self.rounded.script} computes in {dtype}. Check the precision mode and the lists."
            )
        if self.ours.skips != skips and self.half.report is None:
            sentences.append(
                f"The {dtype} run skipped {len(skips)} steps after an overflow, and {self.exact.script} has no loss "
                "scale to skip them in float32. Give the migrated script alone, to compare it with itself."
            )
        if not skips and not self.ours.streams:
            sentences.append(verifying.NOTHING_RECORDED)
        return sentences

    def compare_within_band(
        self, result: Result, perturbed: list[Recording], settings: Settings, report: Report
    ) -> Result:
        """Compare within the band of perturbed runs. Return the result with the verdict."""
        drop_overflows(self.theirs, [self.ours, *perturbed])
        part = half_part_without_band(
            self.half.precision, self.perturbation_size, self.half.perturbed, self.half_report, self.theirs
        )
        bands, compared, elements = None, None, []
        if perturbed:
            bands = half_band.band_of_perturbed_runs(
                self.half.dtype, [compare_recordings(self.ours, other, ANY) for other in perturbed]
            )
            compared = compare_recordings(self.ours, self.theirs, settings.tolerance, _KINDS, limits=bands)
            if compared.first_departure and not result.problems and not self.theirs.skips:
                try:
                    elements = rerun_for_largest_differences(compared, self.exact, self.rounded, report)
                except NotRepeated as failure:
                    result.problems.append(str(failure))
            add_values(result, compared, elements)
            add_bands(result, part, compared, bands)
        differences = _difference_sentences(self.half_report, self.theirs.skips, compared)
        result.verdict = NOT_RUN if result.problems else DIFFER if differences else AGREE
        result.problems += differences
        result.deliberate = deliberate_changes.deliberate_changes_given_to([self.ours], in_half=True)
        result.half = part
        return result


def _difference_sentences(
    report: HalfReport, skips: Sequence[tuple[int, int]], compared: Comparison | None
) -> list[str]:
    """Return a sentence for each difference."""
    sentences = []
    lost = report.skipped_at_end
    scale = report.loss_scale[-1] if report.loss_scale else math.nan
    if skips and (lost >= _LOST or len(skips) == report.steps):
        sentences.append(
            f"The loss scale does not recover: the last {lost} of {report.steps} steps were skipped, and the scale "
            f"is {scale:g}. Find the op that overflows at any scale."
        )
    first = compared.first_departure if compared else None
    if first is not None:
        sentences.append(
            f"The first value beyond the band is at step {first.step}: {first.kind} {first.name!r}, {first.text}."
        )
        overflow = report.overflow
        if overflow.first_op:
            sentences.append(
                f"The first op with Inf or NaN is at step {overflow.first_step}: {overflow.first_op}. Keep it in "
                "float32 with a mixlist, scale the loss, or reduce its inputs."
            )
        if overflow.saturated:
            sentences.append(f"The first op that saturated is {next(iter(overflow.saturated))!r}.")
    return sentences
