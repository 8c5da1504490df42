"""The published throughputs and what is predicted for them: the committed tables are whole."""

from __future__ import annotations

import ast
import pathlib
from typing import Any

import pytest

from npu_shim.rehearsal.predict.ranges import shipped_step_range
from tests.docs_modules import load

pytestmark = pytest.mark.once
MODES = ("allow_mix_precision", "allow_fp32_to_fp16")


@pytest.fixture
def make_predictions() -> Any:
    """The script."""
    return load("make_predictions")


@pytest.fixture
def networks(repo_root: pathlib.Path) -> set[str]:
    """The names of the networks that have a builder."""
    files = (repo_root / "docs" / "op_times" / "networks").glob("*.py")
    nodes = [node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {function.name for function in functions if any("network" in ast.dump(d) for d in function.decorator_list)}


def test_each_statement_is_whole(make_predictions: Any, networks: set[str]) -> None:
    """A row has a name of its own, a source, a number and, with a graph, what the graph needs."""
    rows = make_predictions.statements()
    assert len({row.model for row in rows}) == len(rows) >= 30
    for row in rows:
        assert float(row.stated) > 0 and row.unit and int(row.cards) > 0 and row.repository and row.commit, row.model
        assert "#L" in row.path or "/" not in row.repository, row.model
        assert not row.seconds or float(row.seconds) > 0, row.model
        if row.graph:
            assert row.graph.split()[0] in networks, row.model
            assert int(row.batch) > 0 and row.size and row.precision in MODES and row.seconds, row.model


def test_seconds_are_those_of_the_stated_number(make_predictions: Any) -> None:
    """Seconds of a step follow from the number and its unit where no steps of an epoch come in."""
    for row in make_predictions.statements():
        stated = float(row.stated)
        seconds = {"ms/step": stated / 1000, "s/step": stated, "step/s": 1 / stated}.get(row.unit)
        if row.unit == "examples/s" and row.batch:
            seconds = int(row.batch) * int(row.cards) / stated
        if seconds:
            assert float(row.seconds) == pytest.approx(seconds, rel=1e-3), row.model


def test_each_statement_has_a_prediction_or_a_reason(make_predictions: Any) -> None:
    """No row of throughputs.tsv is missing, and the ratios are those of the rows."""
    rows, results = make_predictions.statements(), make_predictions.results()
    assert [row.model for row in rows] == list(results)
    for row in rows:
        result = results[row.model]
        assert result.seconds == row.seconds and bool(result.predicted) != bool(result.reason), row.model
        assert (result.reason == make_predictions.NO_GRAPH) == (not row.graph), row.model
        if result.predicted:
            assert float(result.ratio) == pytest.approx(float(result.predicted) / float(row.seconds), rel=0.01)


def test_the_range_that_ships_holds_for_networks_that_it_has_not_seen(make_predictions: Any) -> None:
    """It is that of the committed predictions, and covers 80 % of the steps without their network."""
    fitted, holds = make_predictions.step_range(make_predictions.comparisons())
    assert shipped_step_range() == fitted and fitted.held >= 0.8
    assert fitted.held == pytest.approx(sum(holds.values()) / len(holds), abs=1e-3)
    assert fitted.low < 1 < fitted.high and (fitted.steps, len(holds)) == (len(make_predictions.comparisons()),) * 2
    around = fitted.around(0.1)
    assert around.low == pytest.approx(0.1 * fitted.low) and around.high == pytest.approx(
        0.1 * fitted.high + fitted.added
    )


def test_summary_and_page_have_every_compared_row(make_predictions: Any) -> None:
    """The summary counts all rows with a prediction, and the pages show each."""
    pairs = make_predictions.comparisons()
    assert len(pairs) >= 30
    assert make_predictions.summary().splitlines()[1].split("\t")[1] == str(len(pairs))
    for path in make_predictions.PAGES:
        page = pathlib.Path(path).read_text(encoding="utf-8")
        assert page.split(make_predictions._BEGIN)[1].split(make_predictions._END)[0] == make_predictions.tables()
