"""docs/make_zoo.py: the page has the kept results, and each entry has a model and a version of its own."""

from __future__ import annotations

import pathlib

import pytest

from tests.fast.test_public_paths import load

pytestmark = pytest.mark.once


def test_the_page_has_the_table_of_all_kept_results(repo_root: pathlib.Path) -> None:
    maker = load(repo_root, "make_zoo")
    page = (repo_root / "docs" / "public-models.md").read_text(encoding="utf-8")
    assert page.split(maker._BEGIN)[1].split(maker._END)[0] == maker.table()
    keys = [(each.folder, each.tensorflow) for each in maker.MODELS]
    assert len(set(keys)) == len(keys) and all(result.verdict == "agree" for result in maker.results().values())
