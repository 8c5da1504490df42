"""Departures within what rounding does to a training, without TensorFlow: perturbed runs are recordings made here."""

from __future__ import annotations

import pathlib
from typing import Any, Callable

import numpy as np
import pytest

from npu_shim.rehearsal import enlarged
from npu_shim.rehearsal.comparing.comparison import Comparison, compare_recordings
from npu_shim.rehearsal.comparing.ranks import compare_with_one
from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.recording.kinds import GRADIENT, LOSS, RATE, VARIABLE
from npu_shim.rehearsal.running import Run
from tests.recordings import recording

pytestmark = pytest.mark.once
TOLERANCE = 1e-5
Change = Callable[[int, str, str, np.ndarray], Any]


def departing(size: float, seed: int, before: float = 1e-7, rate: float = 1.0, loss: float | None = None) -> Change:
    """Return a change by rounding before step 3, by ``size`` from then on, and of the learning rate at step 3.

    ``loss`` is the size for losses, if it is another one.
    """
    random = np.random.RandomState(seed)

    def change(step: int, kind: str, name: str, value: np.ndarray) -> Any:
        if kind == RATE and step == 3:
            return value * np.float32(rate)
        if kind not in (LOSS, GRADIENT, VARIABLE):
            return value
        of_kind = size if loss is None or kind != LOSS else loss
        relative = of_kind if step >= 3 else before
        return value * (1 + relative * random.choice([-1, 1]) * np.float32(random.uniform(0.5, 1)))

    return change


def within(
    folder: pathlib.Path, theirs: Change, size: float, monkeypatch: pytest.MonkeyPatch, count: int = 1
) -> tuple[Comparison | None, int]:
    """Return the comparison of some ranks within the band of runs that depart by ``size``, and the number of runs."""
    runs: list[int] = []

    def run_perturbed(run: Run, number: int, count: int, report: Callable[[str], None]) -> Recording:
        runs.append(number)
        return recording(folder / f"perturbed_{number}", departing(size, 10 + number))

    monkeypatch.setattr(enlarged, "run_perturbed", run_perturbed)
    ours, other = recording(folder / "ours"), recording(folder / "theirs", theirs)
    others = [other] * count
    found = compare_recordings(ours, other, TOLERANCE) if count == 1 else compare_with_one(ours, others, TOLERANCE)
    run = Run("original", "train.py", [], str(folder), None, 1, True, 1, None, None, None)
    return enlarged.compare_within_band(found, run, ours, others, TOLERANCE, lambda text: None), len(runs)


def test_a_departure_within_the_band_is_none(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, runs = within(tmp_path, departing(1e-3, 1), 1e-3, monkeypatch)
    assert found is not None and found.first_departure is None and runs == 4


def test_rounding_may_show_in_the_step_of_the_departure_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at step 1: the loss of two orders of sums differs by 1e-7, and a maximum near a tie enlarges that at once."""
    found, runs = within(tmp_path, departing(1e-3, 1, before=0.0, loss=1e-7), 1e-3, monkeypatch)
    assert found is not None and found.first_departure is None and runs == 4


def test_a_departure_is_not_that_of_rounding(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, runs = within(tmp_path / "larger", departing(1e-1, 1), 1e-3, monkeypatch)
    assert found is None and runs == 1  # one run shows it
    found, runs = within(tmp_path / "first", departing(1e-3, 1, before=0.0), 1e-3, monkeypatch)
    assert found is None and runs == 0  # nothing rounds before it


def test_a_defect_beside_enlarged_rounding_is_named(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = within(tmp_path, departing(1e-3, 1, rate=1.001), 1e-3, monkeypatch)
    assert found is not None and found.first_departure is not None
    assert (found.first_departure.step, found.first_departure.kind) == (3, RATE)


def test_ranks_have_the_band_and_what_ranks_may_depart_by(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, runs = within(tmp_path / "rounding", departing(1e-3, 1), 1e-3, monkeypatch, count=2)
    assert found is not None and found.first_departure is None and runs == 4
    found, runs = within(tmp_path / "larger", departing(3e-2, 1), 1e-4, monkeypatch, count=2)
    assert found is None and runs == 1
    found, _ = within(tmp_path / "rate", departing(1e-3, 1, rate=1.001), 1e-3, monkeypatch, count=2)
    assert found is not None and found.first_departure is not None and found.first_departure.kind == RATE
