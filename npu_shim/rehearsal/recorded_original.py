"""Write the recording of an original that has been verified, and compare a migrated script with such a recording."""

from __future__ import annotations

import os
from dataclasses import replace

from npu_shim.rehearsal import deliberate_changes, enlarged, portable, reproducing, verifying, verifying_half
from npu_shim.rehearsal.comparing import half_band
from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.half_band import ANY
from npu_shim.rehearsal.comparing.read_recording import Recording, read_recording
from npu_shim.rehearsal.comparing.tolerances import Allowance, Limits
from npu_shim.rehearsal.failures import NotRepeated, read_recordings, run_again
from npu_shim.rehearsal.half_run import Half, HalfRun
from npu_shim.rehearsal.recording.kinds import KINDS, PRINT
from npu_shim.rehearsal.result import AGREE, NOT_REPRODUCIBLE, NOT_RUN, Result
from npu_shim.rehearsal.running import Run
from npu_shim.rehearsal.verifying import Report, Settings


def record_original(
    folder: str, original: Run, migrated: Run, settings: Settings, half: Half | None, perturbed: int, report: Report
) -> Result:
    """Verify a migration, run the original once more, and write its recording.

    Args:
        folder: receives the recording.
        original, migrated: the runs. The original has ``whole``.
        settings: of the comparison.
        half: of half precision; None without it.
        perturbed: number of runs in float32 that follow what rounding does to this training.
        report: prints a line about the progress.
    Returns:
        The result. The original is not reproducible if it departs from itself.
    Raises:
        portable.RecordingError: if the recording is too large.
    """
    if half is None:
        result = verifying.verify(original, migrated, settings, report)
    else:
        result = verifying_half.verify_half(original, migrated, settings, half, report)
    if not result.original.completed:
        return result
    ours, theirs = read_recordings(original)[0], read_recordings(migrated)
    run, about = deliberate_changes.run_with_deliberate_changes(original, theirs), None
    if half is not None and theirs:
        run = replace(run, half=HalfRun(half.precision, 0.0, theirs[0].skips))
        about = replace(half, report=theirs[0].end.half if theirs[0].end else None)
    report(f"{run.run_text} again, to compare it with itself")
    try:
        again = run_again(replace(run, whole=None, folder=os.path.join(run.folder, reproducing.AGAIN)))
        for number in range(1, 1 + perturbed) if half is None else ():
            enlarged.run_perturbed(run, number, perturbed, report)
    except NotRepeated as failure:
        result.verdict = NOT_RUN
        result.problems.append(str(failure))
        return result
    _check_repeated(result, ours, again, settings.tolerance)
    assert original.whole is not None
    portable.replace_recording(folder, run, result.original.exit_code, ours, about, original.whole.most_bytes)
    report(f"wrote the recording {folder}")
    return result


def _allowance_for_rounding(original: portable.Recorded) -> Allowance:
    """Return what another version or device may differ by, as it rounds differently."""
    ours = read_recording(original.folder)
    folders = sorted(os.path.dirname(name) for name in original.manifest.files if name.startswith("perturbed_"))
    perturbed = [read_recording(os.path.join(original.folder, name)) for name in dict.fromkeys(folders)]
    return (
        half_band.band_of_perturbed_runs("float32", [compare_recordings(ours, other, ANY) for other in perturbed])
        if perturbed
        else Limits()
    )


def _check_repeated(result: Result, ours: Recording, repeated: Recording, tolerance: float) -> None:
    """Change the verdict if the original departs from itself."""
    kinds = [kind for kind in KINDS if kind != PRINT]
    first = compare_recordings(ours, repeated, tolerance, kinds).first_departure
    if first is not None and result.verdict == AGREE:
        result.itself = reproducing.describe_departure(first, ours, repeated)
        result.verdict = NOT_REPRODUCIBLE
        result.problems += reproducing.departure_sentences(result.itself)


def verify_against(
    original: portable.Recorded, migrated: Run, settings: Settings, report: Report, is_npu: bool
) -> Result:
    """Run a migrated script, and compare it with a recording.

    Args:
        original: the recording.
        migrated: the run.
        settings: of the comparison.
        report: prints a line about the progress.
        is_npu: True on a device that computes in 16 bits itself.
    Returns:
        The result.
    """
    half = original.manifest.half
    if half is None:
        return verifying.verify(original, migrated, replace(settings, limits=_allowance_for_rounding(original)), report)
    return verifying_half.verify_half(
        original, migrated, settings, half if is_npu else replace(half, report=None), report
    )
