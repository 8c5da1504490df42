"""The band of half precision, skipped steps, and their reports, without TensorFlow."""

from __future__ import annotations

import json
import math
import pathlib
import xml.etree.ElementTree
from typing import Any

import numpy as np
import pytest

from npu_shim.rehearsal.comparing import half_band
from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.half_band import ROUNDOFF, band_of_perturbed_runs, perturbation_size
from npu_shim.rehearsal.comparing.read_recording import drop_overflows, read_recording
from npu_shim.rehearsal.recording.digest import NOT_FINITE
from npu_shim.rehearsal.recording.kinds import FETCH, FINAL, GRADIENT, LOSS, METRIC, RATE, TAPE, VARIABLE
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import Writer
from npu_shim.rehearsal.reports import WRITERS, write_reports
from npu_shim.rehearsal.reports.text import to_text
from tests.recordings import perturbed, recording, verified_half

pytestmark = pytest.mark.once


def test_the_perturbation_grows_with_the_root_of_the_ops_for_each_value() -> None:
    assert perturbation_size("float16", 36, 9) == 2 * 2.0**-11
    assert perturbation_size("bfloat16", 5, 9) == 2.0**-8 and perturbation_size("float16", 0, 0) == 2.0**-11
    assert np.finfo(np.float16).eps == 2 * ROUNDOFF["float16"]


def test_the_band_is_the_quantile_of_the_perturbed_runs_and_a_rounding(tmp_path: pathlib.Path) -> None:
    ours = recording(tmp_path / "ours")
    runs = [compare_recordings(ours, recording(tmp_path / str(n), perturbed(n)), 1e300) for n in range(4)]
    found = band_of_perturbed_runs("float16", runs)
    losses = [dict(next(each for each in run.compared if each.original.kind == LOSS).differences) for run in runs]
    largest = [max(each[step] for step in (1, 2)) for each in losses]
    want = 8.61 * math.sqrt(sum(each**2 for each in largest) / 4)
    assert found.by_stream[LOSS, "loss"][1] == pytest.approx(want)
    stream = ours.streams[LOSS, "loss"]
    assert found.widened_limit(1e-5, stream, 1, 2) == pytest.approx(want + 2.0**-11)
    assert found.widened_limit(1e-5, ours.streams[RATE, "learning_rate"], 1, 2) == 1e-5


def test_one_more_perturbed_run_is_inside_and_ten_times_the_perturbation_outside(tmp_path: pathlib.Path) -> None:
    assert verified_half(tmp_path / "a", perturbed(9)).verdict == "agree"

    def larger(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
        return value * np.float32(1.02) if step >= 3 and name == "second/kernel" and kind == GRADIENT else value

    found = verified_half(tmp_path / "b", larger)
    first = found.first_departure
    assert first is not None
    assert (found.verdict, first.step, first.kind, first.name) == ("differ", 3, GRADIENT, "second/kernel")


def test_inf_is_outside_also_of_a_value_that_moves_in_steps(tmp_path: pathlib.Path) -> None:
    def other(value: float) -> Any:
        def change(step: int, kind: str, name: str, array: np.ndarray) -> np.ndarray:
            return np.asarray(value) if kind == METRIC else array

        return change

    found = verified_half(tmp_path / "a", other(0.5))
    assert found.verdict == "agree" and found.half is not None and found.half.in_steps == ["metric evaluate accuracy"]
    first = verified_half(tmp_path / "b", other(math.nan)).first_departure
    assert first is not None and first.kind == METRIC


def test_a_variable_follows_from_its_gradient_and_only_inf_in_it_is_outside(tmp_path: pathlib.Path) -> None:
    def turned(value: float) -> Any:
        def change(step: int, kind: str, name: str, array: np.ndarray) -> np.ndarray:
            return array * np.float32(value) if (kind, name) == (VARIABLE, "first/kernel") else array

        return change

    assert verified_half(tmp_path / "a", turned(-1)).verdict == "agree"
    first = verified_half(tmp_path / "b", turned(math.inf)).first_departure
    assert first is not None and (first.step, first.kind, first.name) == (1, VARIABLE, "first/kernel")


def skipping(folder: pathlib.Path, ends: bool) -> Any:
    """Return the recording of three steps with a tape, of which the loss scale skips the first and, if so, the last."""
    folder.mkdir()
    writer = Writer(str(folder))
    recorder = Recorder(writer)
    for step in range(3):
        value = np.array(math.inf if step != 1 else 2.0, np.float32)
        recorder.record_tensors([(LOSS, "loss", value), (TAPE, "w", value)])
        if step == 1 or (step == 2 and not ends):
            recorder.record_update(0, [(GRADIENT, "w", np.ones(1)), (VARIABLE, "w", np.ones(1))])
        else:
            writer.write_event("skip", optimizer=0, number=step + 1)
        recorder.record_values(FETCH, [("loss", value)])
    recorder.record_values(FINAL, [("w", np.ones(1))])
    return read_recording(str(folder))


def test_values_of_a_skipped_step_are_not_compared(tmp_path: pathlib.Path) -> None:
    found, other = skipping(tmp_path / "a", True), skipping(tmp_path / "c", True)
    assert found.skips == [(0, 1), (0, 3)] and len(found.streams[FETCH, "loss"].values) == 3
    drop_overflows(found, [other])
    assert len(other.streams[FETCH, "loss"].values) == 1
    for key in ((LOSS, "loss"), (TAPE, "w"), (FETCH, "loss")):
        [value] = found.streams[key].values
        assert not value.digest[NOT_FINITE]
    assert len(found.streams[FINAL, "w"].values) == 1
    assert len(skipping(tmp_path / "b", False).streams[LOSS, "loss"].values) == 2


@pytest.mark.parametrize("saturate", [False, True])
def test_reports_show_band_skipped_steps_and_overflow(saturate: bool, tmp_path: pathlib.Path) -> None:
    found = verified_half(tmp_path / "runs", perturbed(9), saturate)
    text = to_text(found)
    for part in (
        "ops in 16 bits: 12, allow_mix_precision",
        "band: 8.61 times the difference of 4 float32 runs with values perturbed by 6.0e-04, plus 4.9e-04",
        "steps that the loss scale skipped: 2 of 7 (1, 2)",
        "loss scale: 1024 at first, 256 at least, 256 at last",
        "overflow: saturated: Exp Exp (3 times)" if saturate else "the first op at step 1: Exp 'Exp' (train.py:9)",
        "largest difference of the loss: ",
        "The float16 run is within the band of float32.",
    ):
        assert part in text
    folder = tmp_path / "r"
    write_reports(found, str(folder), WRITERS)
    page = (folder / "verify.html").read_text(encoding="utf-8")
    assert "Verification in float16" in page and page.count("<svg") == 3 and "in units of its band" in page
    suite = xml.etree.ElementTree.parse(folder / "verify.xml").getroot()
    assert suite.get("failures") == "0"
    names = [case.get("name") for case in suite]
    assert names[:2] == ["float32 run ends", "float16 run ends"]
    assert "float16 run is within the band of float32" in names
    json.dumps(found.to_json(), allow_nan=False)


def test_a_quantile_for_each_number_of_runs() -> None:
    assert half_band.student_t_quantile(2) > half_band.student_t_quantile(4) == 8.61 > half_band.student_t_quantile(30)
