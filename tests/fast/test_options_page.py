"""The options' page has each option once, with what is allowed."""
from __future__ import annotations

import re

import pytest

from npu_shim.options import KEYS
from npu_shim.options.page import markdown

LINES = {re.match(r"\| `(\w+)`", line).group(1): line for line in markdown().split("\n") if line.startswith("| `")}


@pytest.mark.parametrize("name", KEYS)
def test_an_option_has_its_line(name):
    row, cells = KEYS[name], re.split(r"(?<!\\)\|", LINES[name])
    assert len(cells) == 9 and row.doc in cells[7] and row.allowed.text == cells[3].strip().replace("\\|", "|")
    assert ("Deprecated" in cells[7]) == bool(row.deprecated)


def test_it_is_in_order_and_whole():
    assert list(LINES) == sorted(KEYS, key=str.lower)
