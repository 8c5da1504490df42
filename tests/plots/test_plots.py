"""The plots of how cost grows: every figure that was measured becomes a point, and the same figures the same bytes."""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

import pytest


@pytest.fixture
def plots(repo_root: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, which finds what the function measured() of it is given."""
    monkeypatch.syspath_prepend(str(repo_root / "benchmarks"))
    import plots as script
    import results

    monkeypatch.setattr(results, "_NUMBERS", tmp_path / "results.json")
    return script


def measured(tmp_path: pathlib.Path, **rows: list[dict[str, Any]]) -> None:
    (tmp_path / "results.json").write_text(json.dumps({name: {"rows": each} for name, each in rows.items()}))


def op(version: str, memory: str, elements: int, **seconds: float) -> dict[str, Any]:
    return {
        "TensorFlow": version,
        "type": "float32",
        "shape": "static",
        "memory": memory,
        "elements": elements,
        "forward": {},
        "both": seconds,
    }


def test_a_line_has_the_points_that_were_measured(plots: Any, tmp_path: pathlib.Path) -> None:
    measured(
        tmp_path,
        gelu=[
            op("2.15.1", "as it is", 1000, ours=0.001, formula=0.002),
            op("2.6.5", "kept", 10, ours=1e-3),
            op("2.15.1", "as it is", 2000, ours=0.003),
            dict(op("2.6.5", "kept", 10, ours=9), type="half"),
        ],
        ranks=[{"ranks": 2, "one_process_s": 0.004, "ranks_s": 0.005}],
        collectives=[
            {"ranks": 2, "size": "1 MB", "seconds": {"servers": 0.5}},
            {"ranks": 4, "size": "1 MB", "seconds": {"servers": 0.25}},
        ],
    )
    assert [(panel.title, panel.lines) for panel in plots.elements()] == [
        ("gelu, TensorFlow 2.6.5", {"ours, memory kept": [(10, 1.0)]}),
        ("gelu, TensorFlow 2.15.1", {"ours": [(1000, 1.0), (2000, 3.0)], "formula": [(1000, 2.0)]}),
    ]
    step, one, _ = plots.ranks()
    assert (step.lines, one.lines) == (
        {"one process": [(2, 4.0)], "the ranks": [(2, 5.0)]},
        {"servers": [(2, 500.0), (4, 250.0)]},
    )


def test_all_that_was_measured_is_drawn_and_nothing_else(plots: Any, tmp_path: pathlib.Path) -> None:
    measured(
        tmp_path,
        gelu=[
            op(version, memory, elements, ours=elements * 1e-9, formula=elements * 2e-9)
            for version in ("1.15.5", "2.21.0")
            for memory in ("as it is", "kept")
            for elements in (10, 1000)
        ],
    )
    for out in ("a", "b"):
        assert plots.main(["--out", str(tmp_path / out)]) == 0
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["elements.svg"]
    text = (tmp_path / "a" / "elements.svg").read_text()
    assert text == (tmp_path / "b" / "elements.svg").read_text()
    for words in ("gelu, TensorFlow 1.15.5", "gelu, TensorFlow 2.21.0", "formula, memory kept", "ours", "elements"):
        assert f">{words}<" in text
    assert (
        len(re.findall(r"stroke-dasharray: [1-9]", text)) == 8
    )  # two kept lines in each of two panels, and their keys
    assert "matplotlib" in sys.modules


def test_the_plots_in_the_checkout_are_of_its_figures(
    repo_root: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(repo_root / "benchmarks"))
    import plots as script

    script.main(["--out", str(tmp_path)])
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (repo_root / "benchmarks" / "plots").iterdir()}
    for name in drawn:
        made, kept = (words((folder / name).read_text()) for folder in (tmp_path, repo_root / "benchmarks" / "plots"))
        assert made == kept


def words(svg: str) -> list[str]:
    """The texts of a plot without the numbers of its axes, which depend on the version of matplotlib."""
    return [text for text in re.findall(r">([^<>\n]+)</text>", svg) if not re.match(r"[\d.]+(e[+-]\d+)?$", text)]
