"""Recordings for tests, written without TensorFlow."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Any, Callable, Sequence

import numpy as np

from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.half_band import band_of_perturbed_runs
from npu_shim.rehearsal.comparing.read_recording import Recording, read_recording
from npu_shim.rehearsal.half_result import half_part_without_band
from npu_shim.rehearsal.half_run import HalfReport, Overflow, Precision
from npu_shim.rehearsal.half_values import add_bands
from npu_shim.rehearsal.recording.kinds import GRADIENT, INPUT, LOSS, METRIC, RATE, VARIABLE
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import Writer
from npu_shim.rehearsal.result import AGREE, DIFFER, Element, MeanBand, Result, Terms, run_part
from npu_shim.rehearsal.result_values import add_values
from npu_shim.rehearsal.running import Run

Change = Callable[[int, str, str, np.ndarray], Any]  # step, kind, name, value -> value, None for no value
STEPS = 5


def unchanged(step: int, kind: str, name: str, value: np.ndarray) -> Any:
    """Return the value."""
    return value


def recording(folder: pathlib.Path, change: Change = unchanged, ended: str = "returned") -> Recording:
    """Write and read the recording of five steps with two layers.

    Args:
        folder: is made.
        change: is applied to each value.
        ended: of the event at the end; empty for a process that was killed.
    """
    folder.mkdir(parents=True)
    writer = Writer(str(folder))
    recorder = Recorder(writer)
    writer.write_event("start", command=["train.py"], python="3.11.7", rank=None)
    random = np.random.RandomState(0)
    for step in range(1, STEPS + 1):
        rows = [(INPUT, "batch 0", random.rand(8, 4).astype("f4")), (LOSS, "loss", np.float32(1 / step))]
        for kind in (GRADIENT, VARIABLE):
            rows += [(kind, name, random.rand(40, 3).astype("f4")) for name in ("first/kernel", "second/kernel")]
        rows.insert(4, (RATE, "learning_rate", np.float32(0.1)))
        changed = [(kind, name, change(step, kind, name, np.asarray(value))) for kind, name, value in rows]
        recorder.record_update(
            0, [(kind, name, np.asarray(value)) for kind, name, value in changed if value is not None]
        )
    accuracy = change(STEPS, METRIC, "evaluate accuracy", np.asarray(0.75))
    recorder.record_values(METRIC, [("evaluate accuracy", accuracy)])
    if ended:
        writer.write_event("end", ended=ended, steps=STEPS, seconds=1.5, peak_bytes=10**8)
    return read_recording(str(folder))


FOUND = HalfReport(  # what a run in half precision reports
    ops=12,
    matrix_casts=0,
    casts=0,
    steps=STEPS + 2,
    skipped_at_end=0,
    loss_scale=[1024.0, 256.0, 256.0],
    overflow=Overflow(2, 1, "Exp 'Exp' (train.py:9): 1 +Inf of 1"),
)
TERMS = Terms(1e-5, 1, None, True, 1)


def perturbed(number: int) -> Change:
    """Return a change that perturbs losses, gradients and variables by 1e-3."""
    random = np.random.RandomState(number)

    def change(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
        if kind not in (LOSS, GRADIENT, VARIABLE):
            return value
        return np.asarray(value * (1 + 1e-3 * random.uniform(-1, 1, value.shape)), np.float32)

    return change


def verified_half(folder: pathlib.Path, change: Change, saturate: bool = False) -> Result:
    """Return the result of --half for a float32 recording, four perturbed ones, and one that is changed."""
    ours, theirs = recording(folder / "original"), recording(folder / "migrated", change)
    theirs.skips = [(0, 1), (0, 2)]
    four = [recording(folder / str(number), perturbed(number)) for number in range(4)]
    bands = band_of_perturbed_runs("float16", [compare_recordings(ours, each, 1e300) for each in four])
    found = compare_recordings(ours, theirs, limits=bands)
    runs = [Run(name, "train.py", [], str(folder / name)) for name in ("original", "migrated")]
    parts = [
        run_part(run, 0, [each], precision)
        for run, each, precision in zip(runs, (ours, theirs), ("float32", "float16"))
    ]
    made = Result(DIFFER if found.departures else AGREE, TERMS, *parts)
    add_values(made, found)
    overflow = Overflow(0, None, None, {"Exp Exp": 3})
    reported = replace(FOUND, overflow=overflow) if saturate else FOUND
    made.half = half_part_without_band(Precision(saturate=saturate), 6e-4, 4, reported, theirs)
    add_bands(made, made.half, found, bands)
    return made


def verified(folder: pathlib.Path, change: Change = unchanged, bands: Sequence[MeanBand] = ()) -> Result:
    """Return the result for an unchanged and a changed recording, with bands of several seeds."""
    ours, theirs = recording(folder / "original"), recording(folder / "migrated", change)
    found = compare_recordings(ours, theirs)
    runs = [Run(name, "train.py", ["--a=<b>"], str(folder / name)) for name in ("original", "migrated")]
    parts = [run_part(run, 0, [each]) for run, each in zip(runs, (ours, theirs))]
    made = Result(DIFFER if found.departures else AGREE, TERMS, *parts)
    made.problems = ["A <problem>."] if found.departures else []
    made.bands = list(bands)
    add_values(made, found, [Element([0, 1], "1", "nan")])
    return made
