"""docs/make_later_names.py: the page has the kept results, which are those of the list."""

from __future__ import annotations

import pathlib

import pytest

from tests.fast.test_public_paths import load

pytestmark = pytest.mark.once


def test_the_page_has_the_table_of_all_kept_results(repo_root: pathlib.Path) -> None:
    maker = load(repo_root, "make_later_names")
    page = (repo_root / "docs" / "public-code.md").read_text(encoding="utf-8")
    assert page.split(maker._BEGIN)[1].split(maker._END)[0] == maker.table()
    for script in maker.SCRIPTS:
        result = maker.results().get(maker.path(script))
        assert result is None or result.verdict == "agree" or maker.CAUSES[script.script], script.script
