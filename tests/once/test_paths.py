"""The table of the samples in docs/verify.md is what docs/make_paths.py measures, but for the seconds."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("make_paths", str(ROOT / "docs" / "make_paths.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_paths = _script()


def test_every_sample_with_an_original_is_in_the_table() -> None:
    names = {path.parent.name for path in (ROOT / "samples").glob("*/original.py")}
    assert {sample.name for sample in make_paths.SAMPLES} == names


@pytest.mark.parametrize("sample", make_paths.SAMPLES, ids=[sample.name for sample in make_paths.SAMPLES])
def test_the_row_of_a_sample_is_in_the_page(sample: Any, tmp_path: pathlib.Path) -> None:
    row = make_paths.measure(sample, str(tmp_path))
    assert (row.verdict, row.ranks_verdict) == ("agree", "agree")
    line = make_paths.table([row]).splitlines()[-1]
    page = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    assert line.split(" | ")[:4] in [each.split(" | ")[:4] for each in page.splitlines()]
