"""The page of who does which change of a port: every row has its rule, and every rule its row."""

from __future__ import annotations

import pathlib
import re

import pytest
from convert_tf2npu.rules.registry import Registry

pytestmark = pytest.mark.once

ROWS = {"A": 17, "B": 10, "C": 10, "D": 16, "E": 6, "F": 16, "G": 9, "H": 3, "I": 8, "J": 6, "L": 7, "N": 9}


@pytest.fixture
def rows(repo_root: pathlib.Path) -> list[list[str]]:
    text = (repo_root / "docs" / "porting.md").read_text(encoding="utf-8")
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    return [row for row in found if row[0] not in ("#", "---")]


def numbers(cell: str) -> set[str]:
    """The numbers of a cell such as ``A2``, ``C4, C5`` or ``F8 to F13``."""
    found: set[str] = set()
    for part in filter(None, cell.split(", ")):
        first, _, last = part.partition(" to ")
        found.update(first[0] + str(n) for n in range(int(first[1:]), int((last or first)[1:]) + 1))
    return found


def codes(text: str) -> set[str]:
    """The codes of rules in a text, those of ``NPU230 to NPU239`` among them."""
    known = [rule.code for rule in Registry().rules]
    found = set(re.findall(r"NPU\d{3}", text))
    for first, last in re.findall(r"(NPU\d{3}) to (NPU\d{3})", text):
        found.update(code for code in known if first <= code <= last)
    return found


def test_every_change_has_one_row_that_says_who_makes_it(rows: list[list[str]]) -> None:
    listed = [number for row in rows for number in sorted(numbers(row[0]))]
    assert sorted(listed) == sorted(letter + str(n + 1) for letter, count in ROWS.items() for n in range(count))
    for row in rows:
        assert len(row) == 3 and re.search(r"NPU\d{3}|\blibrary\b|\bnothing\b|\bmanual\b|rule", row[2]), row


def test_every_rule_has_a_row_and_every_row_names_rules_that_there_are(rows: list[list[str]]) -> None:
    named = {code for row in rows for code in codes(row[2])}
    assert named == {rule.code for rule in Registry().rules}
