"""The options page, paragraphs and docstrings contain each option with its allowed values."""

from __future__ import annotations

import re

import pytest

from npu_shim.options.page import arguments_docstring, documented_options, option_paragraph, options_markdown
from npu_shim.options.table import KEYS, TABLE, options_by_argument

pytestmark = pytest.mark.once

LINES = {row.group(1): row.group() for row in re.finditer(r'^\| <a id="\w+"></a>`(\w+)`.*', options_markdown(), re.M)}


@pytest.mark.parametrize("name", KEYS)
def test_an_option_has_its_line(name):
    row, cells = KEYS[name], re.split(r"(?<!\\)\|", LINES[name])
    assert len(cells) == 9 and row.doc in cells[7] and cells[2].strip().replace("\\|", "|").endswith(row.allowed.text)
    assert ("Deprecated" in cells[7]) == bool(row.deprecated) and cells[3].strip() == (
        "error" if row.refused else "warning"
    )
    assert f'`parameter_map["{name}"].{row.field}`' in cells[5]


def test_the_page_is_sorted_and_complete():
    assert list(LINES) == sorted([*KEYS, "recompute", "overflow_flag", "execute_times"], key=str.lower)


@pytest.mark.parametrize("row", documented_options(), ids=lambda row: row.name)
def test_a_paragraph_has_every_fact(row):
    text = option_paragraph(row)
    assert (
        text.startswith(row.name + "\n")
        and row.doc in text
        and row.allowed.text in text
        and f"since: {row.since}" in text
    )
    assert (f"global_options().{row.tf2_path}" in text) == ("tf2" in row.modes)
    assert ("deprecated: " in text) == bool(row.deprecated)
    for other in row.excludes + row.requires + ((row.replacement,) if row.replacement else ()):
        assert other in text and other in KEYS
    assert row.modes and (row.products in text)


@pytest.mark.parametrize("holder", sorted({row.holder for row in TABLE}, key=str))
def test_docstrings_have_every_argument(holder):
    lines = {line.strip().split(":")[0]: line for line in arguments_docstring(holder).split("\n")}
    assert list(lines) == list(options_by_argument(holder))
    for name, row in options_by_argument(holder).items():
        assert row.doc in lines[name] and (not row.field or row.allowed.text in lines[name])
