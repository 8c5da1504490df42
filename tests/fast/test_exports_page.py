"""docs/make_exports.py: the page has the kept results, and lines of atc are read and compared."""

from __future__ import annotations

import pathlib

import pytest

from tests.fast.test_public_paths import load

pytestmark = pytest.mark.once


def test_the_page_has_the_table_of_all_kept_results(repo_root: pathlib.Path) -> None:
    maker = load(repo_root, "make_exports")
    page = (repo_root / "docs" / "public-models.md").read_text(encoding="utf-8")
    assert page.split(maker._BEGIN)[1].split(maker._END)[0] == maker.table()


def test_lines_of_atc_agree_in_any_order_of_inputs(repo_root: pathlib.Path) -> None:
    maker = load(repo_root, "make_exports")
    page = '```\natc --model=a.pb --framework=3 \\\n  --input_shape="b:1,2; a:3" --out_nodes="prob:0"\n```\n'
    theirs = maker.arguments(page)
    assert theirs["input_shape"] == "b:1,2; a:3"
    ours = maker.arguments("atc --model=m.pb '--input_shape=a:3;b:1,2' --out_nodes=prob:0")
    assert maker.agreement(theirs, ours) == "same inputs and shapes; same outputs"
    assert maker.agreement(theirs, {**ours, "out_nodes": "c:0"}) == (
        "same inputs and shapes; outputs differ: `prob:0`, here `c:0`"
    )
    assert maker.agreement({"model": "a.pb"}, ours) == ""
