"""The benchmarks run, and their engines agree with their baselines; what they measure decides nothing."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

from tests.distributed.test_training import environment


def rows(repo_root: pathlib.Path, script: str) -> list[list[str]]:
    """The table that a benchmark prints, its head first."""
    done = subprocess.run(
        [sys.executable, str(repo_root / "benchmarks" / script), "--quick"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]


def test_all_engines_come_to_the_same_sums(repo_root: pathlib.Path) -> None:
    head, _, *measured = rows(repo_root, "collectives.py")
    assert [row[:2] for row in measured] == [["2", "1 KB"], ["2", "1 MB"], ["4", "1 KB"], ["4", "1 MB"]]
    assert "in a session, ms" in head


def test_steps_of_ranks_are_measured_against_one_process(repo_root: pathlib.Path) -> None:
    head, _, measured = rows(repo_root, "ranks.py")
    assert measured[:2] == ["2", "128"] and all(float(cell) > 0 for cell in measured[2:]) and len(measured) == len(head)


def test_figures_are_kept_as_a_table_and_as_numbers(
    repo_root: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    monkeypatch.syspath_prepend(str(repo_root / "benchmarks"))
    import results

    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(results, "_NUMBERS", tmp_path / "results.json")
    page = "before\n<!-- %s: made by benchmarks/%s.py -->\nold\n<!-- end of %s -->\nafter\n"
    (tmp_path / "RESULTS.md").write_text(page % (("a",) * 3) + page % (("b",) * 3))
    table = results.markdown(["x", "y"], [["1", "2"]])
    assert table == "| x | y |\n| --- | --- |\n| 1 | 2 |\n"
    results.report("a", table, [{"x": 1}], True)
    results.report("b", table, [{"x": 2}], True)
    results.report("a", table, [{"x": 3}], True)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "old" not in text and text.count(table) == 2 and text.count("before\n") == text.count("after\n") == 2
    kept = json.loads((tmp_path / "results.json").read_text())
    assert {name: section["rows"] for name, section in kept.items()} == {"a": [{"x": 3}], "b": [{"x": 2}]}
    results.report("a", table, [], False)
    assert (tmp_path / "RESULTS.md").read_text() == text
