"""The count of places that are left in public programs, by rule."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

from tests.docs_modules import entry, load

pytestmark = pytest.mark.once
make_record: Any = load("make_record")
record_places: Any = load("record_places")
SCRIPT = """import os
import sys
assert os.path.exists("model") == ("--evaluate" in sys.argv)  # of the run before
open("model", "w").close()
if len(sys.argv) > 5:
    import tensorflow as tf
    x = tf.placeholder(tf.float32, [None, 3])
"""


def test_the_pages_have_the_counts_that_are_kept(repo_root: pathlib.Path) -> None:
    programs = sys.modules["record_list"].read_programs()  # type: ignore[attr-defined]
    for chinese, name in enumerate(("record.md", "zh/record.md")):
        page = (repo_root / "docs" / name).read_text(encoding="utf-8")
        text = page.split(record_places._BEGIN)[1].split(record_places._END)[0]
        assert text == record_places.table(programs, bool(chinese)), "Run python docs/record_places.py --table"


def test_counts_of_programs_are_added_up(monkeypatch: Any) -> None:
    rows = [
        record_places.Places("a", "abc1234", "NPU109 1 0 1; NPU234 3 2 1", "2026-01-02", "0b7387c2"),
        record_places.Places("b", "abc1234", "NPU234 2 1 0", "2026-01-02", "0b7387c2"),
        record_places.Places("c", "abc1234", "", "2026-01-02", "0b7387c2"),
    ]
    kept = type("Kept", (), {"read": lambda self: {row.name: row for row in rows}})
    monkeypatch.setattr(record_places, "kept", lambda programs: kept())
    head, _, _, _, *lines = record_places.table([], False).splitlines()
    assert head == "By rule, in 3 programs. The program with the most places in reached code has 2."
    assert lines == ["| NPU234 | 2 | 5 | 3 | 1 |", "| NPU109 | 1 | 1 | 0 | 1 |", "| total | 3 | 6 | 3 | 2 |"]


def test_a_program_is_observed_and_counted(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    def project(program: Any, sources: str, target: str) -> str:
        pathlib.Path(target).mkdir()
        (pathlib.Path(target) / "train.py").write_text(SCRIPT)
        return "abc1234"

    monkeypatch.setattr(record_places.verified, "project", project)
    monkeypatch.setattr(record_places.verified, "own_commit", lambda: "1234567")
    program = entry(folder="", arguments="--steps 2", further_runs=["--evaluate"])
    commit = record_places.observed(program, "", str(tmp_path))
    result = record_places.counted(program, commit, str(tmp_path))
    assert (result.name, result.ran, result.counts) == (program.name, "abc1234", {"NPU234": (1, 0, 1)})
