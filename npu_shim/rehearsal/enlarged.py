"""Rounding that training enlarges: how far an original departs from itself if its values are perturbed by rounding.

A sum in another order differs by 1e-7. Training can enlarge this to any size: a ReLU near a tie, or Adam, which turns
the rounding of a gradient near zero into a whole step. A departure that follows smaller differences is therefore
compared with what perturbed runs of the original depart by (comparing.half_band).
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Callable

from npu_shim.rehearsal.comparing import half_band, ranks
from npu_shim.rehearsal.comparing.comparison import Comparison, Departure, compare_recordings
from npu_shim.rehearsal.comparing.half_band import ANY
from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.failures import run_again
from npu_shim.rehearsal.half_run import HalfRun, Precision
from npu_shim.rehearsal.precision_modes import MIXED
from npu_shim.rehearsal.recording.kinds import PRINT
from npu_shim.rehearsal.running import Run

ROUNDING = 4 * half_band.ROUNDOFF["float32"]  # of an op whose sums are added in another order
_PRECISION = Precision("float16", MIXED)  # has the perturbed ops
_TOO_SMALL = 0.02  # of the departure: if one run departs by less, three more hardly explain it


def compare_within_band(
    comparison: Comparison,
    original: Run,
    ours: Recording,
    theirs: list[Recording],
    tolerance: float,
    report: Callable[[str], None],
) -> Comparison | None:
    """Compare two scripts within the band of perturbed runs of the original.

    Nothing runs if no smaller difference comes before the first departure, or beside it in its step.

    Args:
        comparison: the comparison of original and migrated script.
        original: the run of the original.
        ours, theirs: the recording of the original, and those of all ranks of the migrated script, or of its process.
        tolerance: of the comparison.
        report: prints a line about the progress.
    Returns:
        The comparison, with the departures beyond the band; None if rounding does not explain the first departure.
    """
    first = comparison.first_departure
    if first is None or first.number is None:
        return None
    if not _has_smaller_differences(comparison, first.step):
        return None
    runs: list[Comparison] = []
    for number in range(1, 1 + half_band.RUNS):
        runs.append(compare_recordings(ours, run_perturbed(original, number, half_band.RUNS, report), ANY))
        if _difference_at(runs[0], first) < _TOO_SMALL * first.difference:
            return None
    band = half_band.band_of_perturbed_runs("float32", runs)
    if len(theirs) > 1:
        banded = ranks.compare_with_one(ours, theirs, tolerance, band)
    else:
        banded = compare_recordings(ours, theirs[0], tolerance, limits=band)
    is_there = any(
        (departure.step, departure.kind, departure.name) == (first.step, first.kind, first.name)
        for departure in banded.departures
    )
    return None if is_there else banded


def run_perturbed(run: Run, number: int, count: int, report: Callable[[str], None]) -> Recording:
    """Run the original with values perturbed by rounding; return the recording.

    Args:
        run: of the original.
        number: of this run, from 1; its folder has it, and the perturbation follows from it.
        count: of all runs, for the progress.
        report: prints a line about the progress.
    Raises:
        NotRepeated: if it does not run to its end.
    """
    half = HalfRun(_PRECISION, ROUNDING, seed=run.seed + number, everywhere=True)
    again = replace(run, whole=None, half=half, folder=os.path.join(run.folder, f"perturbed_{number}"))
    report(f"{run.run_text} with values perturbed by rounding ({number} of {count})")
    return run_again(again)


def _has_smaller_differences(comparison: Comparison, until: int) -> bool:
    """Return True if values of streams that have not departed differ, up to a step."""
    for pair in (pair for pair in comparison.compared if pair.original.kind != PRINT):
        departs = min((departure.step for departure in pair.departures), default=until + 1)
        if any(difference for step, difference in pair.differences if step <= until and step < departs):
            return True
    return False


def _difference_at(perturbed: Comparison, first: Departure) -> float:
    """Return how far a perturbed run departs at the value of a departure."""
    for pair in perturbed.compared:
        if (pair.original.kind, pair.original.name) == (first.kind, first.name):
            return max((difference for step, difference in pair.differences if step <= first.step), default=0.0)
    return 0.0
