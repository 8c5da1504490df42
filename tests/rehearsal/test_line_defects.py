"""verify finds each of 60 defects of one line in a converted script, and none in the script without them."""

from __future__ import annotations

import pathlib
import re

import pytest

from npu_shim.rehearsal.comparing.comparison import compare_recordings
from tests.rehearsal.line_defects import DEFECTS, LineDefect
from tests.rehearsal.recorded_runs import HAS_GRAPH_KERAS, IS_TF2, Record, record as record

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
OF_TF1 = ("session_with_averages", "estimator_of_sequences", "monitored_teacher")
RUNNABLE = [name for name in DEFECTS if (HAS_GRAPH_KERAS if name in OF_TF1 else IS_TF2)]


def cases() -> list[object]:
    return [
        pytest.param(
            script, defect, id=f"{script}: {defect.name}", marks=[pytest.mark.smoke] if defect.is_cheap else []
        )
        for script in RUNNABLE
        for defect in DEFECTS[script]
    ]


@pytest.mark.parametrize("script, defect", cases())
def test_a_defect_of_one_line_is_found(script: str, defect: LineDefect, record: Record, tmp_path: pathlib.Path) -> None:
    original = SCRIPTS / f"{script}.py"
    text = original.read_text(encoding="utf-8")
    assert text.count(defect.old) == 1, defect
    path = tmp_path / original.name
    path.write_text(text.replace(defect.old, defect.new), encoding="utf-8")
    first = compare_recordings(record(original), record(path, converts=True)).first_departure
    assert first is not None, "not found"
    assert (first.step, bool(re.fullmatch(defect.kind, first.kind))) == (defect.step, True), first


@pytest.mark.parametrize(
    "script",
    [pytest.param(name, marks=[pytest.mark.smoke] * (name == "session_with_averages")) for name in RUNNABLE],
)
def test_the_conversion_agrees(script: str, record: Record) -> None:
    found = compare_recordings(record(SCRIPTS / f"{script}.py"), record(SCRIPTS / f"{script}.py", converts=True))
    assert found.departures == [] and len(found.compared) > 30


@pytest.mark.parametrize("script", RUNNABLE)
def test_a_second_run_agrees(script: str, record: Record, tmp_path: pathlib.Path) -> None:
    again = tmp_path / f"{script}.py"
    again.write_text((SCRIPTS / again.name).read_text(encoding="utf-8"), encoding="utf-8")
    found = compare_recordings(record(SCRIPTS / again.name), record(again))
    assert found.departures == [] and not found.matches.only_original and not found.matches.only_migrated


def test_there_are_60_defects_in_six_scripts() -> None:
    assert [len({defect.name for defect in defects}) for defects in DEFECTS.values()] == [10] * 6
    assert sum(defect.is_cheap for defects in DEFECTS.values() for defect in defects) <= 6
