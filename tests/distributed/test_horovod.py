"""Horovod's interface on two and three ranks, in graphs and eagerly."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any, Callable, Dict, List

import pytest
import tensorflow as tf

from tests.distributed.test_training import SCRIPTS, forked, launched
from tests.marks import IN_FORKS, OF_VERSION_1

SCRIPT = SCRIPTS / "horovod_ranks.py"
HELPERS = ("values", "gradient", "main")
CASES = [name for name in re.findall(r"^def (\w+)\(", SCRIPT.read_text(), re.M) if name not in HELPERS]
STYLES = ["graph", "eager"] if tf.__version__ >= "2" else ["graph"]
MARKS = {"graph": OF_VERSION_1, "eager": [pytest.mark.smoke, *IN_FORKS]}
Run = Callable[[str, int], List[Dict[str, Any]]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: Any) -> Run:
    """Return the results of the cases on each rank."""
    known: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def ranks(style: str, size: int) -> list[dict[str, Any]]:
        if (style, size) not in known:
            folder: pathlib.Path = tmp_path_factory.mktemp("horovod")
            forked(size, str(SCRIPT), str(folder), style, folder=folder)
            known[style, size] = [
                json.loads((folder / f"{style}_{rank}_of_{size}.json").read_text()) for rank in range(size)
            ]
        return known[style, size]

    return ranks


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("style", [pytest.param(style, marks=MARKS[style]) for style in STYLES])
def test_two_ranks(style: str, case: str, run: Run) -> None:
    for came in run(style, 2):
        assert came.get(case, "did not run") == ""


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES)
def test_three_ranks(case: str, run: Run) -> None:
    for came in run(STYLES[-1], 3):
        assert came.get(case, "did not run") == ""


@pytest.mark.once_tf115
def test_elastic_training_goes_on_from_its_last_commit(tmp_path: pathlib.Path) -> None:
    output = launched(2, "--max-restarts", "1", str(SCRIPTS / "horovod_elastic.py"), folder=tmp_path)
    assert "rank 0 begins with batch 0" in output
    assert "rank 0 begins with batch 4" in output  # it failed in batch 5, and committed every second one
    assert "rank 0 ends with batch 10 and weight 10.0" in output
