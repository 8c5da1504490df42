"""Run a script in half precision and in float32, and decide if they differ by more than rounding."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Mapping

from npu_shim.rehearsal import deliberate, half_result, result, verifying
from npu_shim.rehearsal.comparing import half_band
from npu_shim.rehearsal.comparing.comparison import Comparison, compare
from npu_shim.rehearsal.comparing.half_band import ANY, RUNS
from npu_shim.rehearsal.comparing.recording import Recording, drop_overflows
from npu_shim.rehearsal.elements import largest_differences
from npu_shim.rehearsal.failures import NotRepeated, not_completed, recordings
from npu_shim.rehearsal.recording.kinds import KINDS, PRINT
from npu_shim.rehearsal.running import Run
from npu_shim.rehearsal.verifying import Report, Settings

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


PERTURBED = "perturbed_"  # and a number: the folder of a run, and of its dumps
_LOST = 5  # skipped steps in a row at the end, after which a loss scale counts as lost
_KINDS = tuple(kind for kind in KINDS if kind != PRINT)  # printed numbers are those of other values


@dataclass(frozen=True)
class Half:
    """Settings of half precision.

    Attributes:
        precision: the arguments of half_precision().
        perturbed: number of perturbed runs.
        found: what the run in half precision reported where the recording was made, on a device that computes in 16
            bits itself; None to round in this process.
    """

    precision: Mapping[str, Any]
    perturbed: int = RUNS
    found: Mapping[str, Any] | None = None

    @property
    def dtype(self) -> str:
        """float16 or bfloat16."""
        return str(self.precision["dtype"])

    def of_run(self, size: float | None, skips: Any = (), seed: int = 0, everywhere: bool = False) -> JsonObject:
        """Return the settings of half.recorded.Rehearsal."""
        given = {"size": size, "skips": list(skips), "seed": seed, "everywhere": everywhere}
        return {"precision": dict(self.precision), **given}


def verify(original: Run, migrated: Run, settings: Settings, half: Half, report: Report) -> result.Result:
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
    rounded = replace(migrated, half=half.of_run(None) if half.found is None else None)
    part, theirs = _run(rounded, half.dtype)
    found = half.found if half.found is not None or theirs is None else theirs.end.get("half")
    skips = theirs.skips if theirs else []
    report(f"{original.starting} in float32")
    original = deliberate.given(original, [theirs] if theirs else [])
    exact = replace(original, half=half.of_run(0.0, skips))
    exact_part, ours = _run(exact, "float32")
    parts = [exact_part, part]
    about = verifying.about(settings, original)
    if ours is None or theirs is None or not found:
        problems = [not_completed(each) for each in parts if not each["completed"]]
        return result.result(
            result.NOT_RUN, about, exact_part, part, problems=problems or [_without_tensorflow(migrated)]
        )
    everywhere = not found["matrix_casts"]
    size = half_band.perturbation(half.dtype, found["ops"], found["casts" if everywhere else "matrix_casts"])
    perturbed = []
    count = half.perturbed if exact_part["completed"] and found["ops"] else 0  # else there is nothing to compare
    for number in range(1, count + 1):
        report(f"{original.starting} in float32, perturbed ({number} of {half.perturbed})")
        name = f"{PERTURBED}{number}"
        run = replace(original, folder=os.path.join(original.folder, name), dump=_beside(original.dump, name))
        run = replace(run, half=half.of_run(size, skips, original.seed + number, everywhere))
        run_part, recorded = _run(run, "float32")
        parts.append(run_part)
        if recorded is not None:
            perturbed.append(recorded)
    problems = [not_completed(each) for each in parts if not each["completed"]]
    if not found["ops"]:
        problems.append(
            f"No float32 op of {migrated.script} computes in {half.dtype}. Check the precision mode and the lists."
        )
    if ours.skips != skips and half.found is None:
        problems.append(
            f"The {half.dtype} run skipped {len(skips)} steps after an overflow, and {original.script} has no loss "
            "scale to skip them in float32. Give the migrated script alone, to compare it with itself."
        )
    if not skips and not ours.streams:
        problems.append(verifying.NOTHING_RECORDED)
    drop_overflows(theirs, [ours, *perturbed])
    bands = half_band.band(half.dtype, [compare(ours, each, ANY) for each in perturbed]) if perturbed else None
    compared = compare(ours, theirs, settings.tolerance, _KINDS, limits=bands) if bands else None
    differences = _differences(found, skips, compared)
    elements = []
    if compared and compared.first and not problems and not skips:
        try:
            elements = largest_differences(compared, exact, rounded, report)
        except NotRepeated as failure:
            problems.append(str(failure))
    verdict = result.NOT_RUN if problems else result.DIFFER if differences else result.AGREE
    made = result.result(
        verdict,
        about,
        exact_part,
        part,
        compared,
        problems + differences,
        (),
        elements,
        deliberate=deliberate.named([ours], in_half=True),
    )
    about_half = {**half.precision, "perturbation": size, "perturbed_runs": half.perturbed}
    return half_result.with_half(made, about_half, found, theirs, compared, bands)


def _beside(dump: Mapping[str, Any] | None, name: str) -> Mapping[str, Any] | None:
    """Return the settings of a dump in a folder inside that of another run."""
    return {**dump, "folder": os.path.join(dump["folder"], name)} if dump and dump["folder"] else dump


def _run(run: Run, precision: str) -> tuple[JsonObject, Recording | None]:
    os.makedirs(run.folder, exist_ok=True)
    code = run.start()
    recorded = recordings(run)
    part = {**result.run_part(run, code, recorded), "precision": precision}
    return part, recorded[0] if recorded else None


def _without_tensorflow(run: Run) -> str:
    return f"{run.script} did not import TensorFlow. Give the script that trains."


def _differences(found: Mapping[str, Any], skips: list[Any], compared: Comparison | None) -> list[str]:
    """Return a sentence for each difference."""
    sentences = []
    lost = found["skipped_at_end"]
    if skips and (lost >= _LOST or len(skips) == found["steps"]):
        sentences.append(
            f"The loss scale does not recover: the last {lost} of {found['steps']} steps were skipped, and the scale "
            f"is {found['loss_scale'][-1]:g}. Find the op that overflows at any scale."
        )
    first = compared.first if compared else None
    if first is not None:
        sentences.append(
            f"The first value beyond the band is at step {first.step}: {first.kind} {first.name!r}, {first.text}."
        )
        overflow = found["overflow"]
        if overflow["first_op"]:
            sentences.append(
                f"The first op with Inf or NaN is at step {overflow['first_step']}: {overflow['first_op']}. Keep it in "
                "float32 with a mixlist, scale the loss, or reduce its inputs."
            )
        if overflow["saturated"]:
            sentences.append(f"The first op that saturated is {next(iter(overflow['saturated']))!r}.")
    return sentences
