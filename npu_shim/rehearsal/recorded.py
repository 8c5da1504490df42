"""Write the recording of an original that has been verified, and compare a migrated script with such a recording."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from npu_shim.rehearsal import deliberate, enlarged, portable, reproducing, result, verifying, verifying_half
from npu_shim.rehearsal.comparing import half_band
from npu_shim.rehearsal.comparing.comparison import compare
from npu_shim.rehearsal.comparing.half_band import ANY
from npu_shim.rehearsal.comparing.recording import Recording, read
from npu_shim.rehearsal.comparing.tolerances import Allowance, Limits
from npu_shim.rehearsal.failures import NotRepeated, recordings, run_again
from npu_shim.rehearsal.recording.kinds import KINDS, PRINT
from npu_shim.rehearsal.running import Run
from npu_shim.rehearsal.verifying import Report, Settings
from npu_shim.rehearsal.verifying_half import Half

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


def record(
    folder: str, original: Run, migrated: Run, settings: Settings, half: Half | None, perturbed: int, report: Report
) -> result.Result:
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
        found = verifying.verify(original, migrated, settings, report)
    else:
        found = verifying_half.verify(original, migrated, settings, half, report)
    part = found["original"]
    if not part["completed"]:
        return found
    ours, theirs = recordings(original)[0], recordings(migrated)
    run, about = deliberate.given(original, theirs), None
    if half is not None and theirs:
        run = replace(run, half=half.of_run(0.0, theirs[0].skips))
        about = {**asdict(half), "found": theirs[0].end.get("half")}
    report(f"{run.starting} again, to compare it with itself")
    try:
        again = run_again(replace(run, whole=None, folder=os.path.join(run.folder, reproducing.AGAIN)))
        for number in range(1, 1 + perturbed) if half is None else ():
            enlarged.run_perturbed(run, number, perturbed, report)
    except NotRepeated as failure:
        found["verdict"], found["problems"] = result.NOT_RUN, [*found["problems"], str(failure)]
        return found
    _judge(found, ours, again, settings.tolerance)
    assert original.whole is not None
    portable.write(folder, run, part["exit_code"], ours, about, original.whole["bytes"])
    report(f"wrote the recording {folder}")
    return found


def _band(original: portable.Recorded) -> Allowance:
    """Return what another version or device may differ by, as it rounds differently."""
    ours = read(original.folder)
    folders = sorted(os.path.dirname(name) for name in original.manifest["files"] if name.startswith("perturbed_"))
    perturbed = [read(os.path.join(original.folder, each)) for each in dict.fromkeys(folders)]
    return half_band.band("float32", [compare(ours, each, ANY) for each in perturbed]) if perturbed else Limits()


def _judge(found: result.Result, ours: Recording, again: Recording, tolerance: float) -> None:
    """Change the verdict if the original departs from itself."""
    kinds = [kind for kind in KINDS if kind != PRINT]
    first = compare(ours, again, tolerance, kinds).first
    if first is not None and found["verdict"] == result.AGREE:
        found["itself"] = reproducing.described(first, ours, again)
        found["verdict"] = result.NOT_REPRODUCIBLE
        found["problems"] += reproducing.sentences(found["itself"])


def against(
    original: portable.Recorded, migrated: Run, settings: Settings, report: Report, is_npu: bool
) -> result.Result:
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
    given: JsonObject | None = original.manifest["half"]
    if given is None:
        return verifying.verify(original, migrated, replace(settings, limits=_band(original)), report)
    half = Half(given["precision"], given["perturbed"], given["found"] if is_npu else None)
    return verifying_half.verify(original, migrated, settings, half, report)
