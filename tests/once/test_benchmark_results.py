"""Figures of benchmarks are kept in the page and in the file for programs."""

from __future__ import annotations

import json
import pathlib
from typing import Any


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
