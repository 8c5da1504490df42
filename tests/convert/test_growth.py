"""The work of the tool grows with the length of a file, not with its square: examples of each rule, many times over."""

from __future__ import annotations

import ast
import sys
from typing import Any, Iterator

import pytest

from tests.convert.test_rules import CONVERTER, RULES, WITH, blocks

_LEAST = 50  # lines


def examples() -> Iterator[tuple[str, str, str]]:
    """Yield the first example of each kind of each rule that may stand in a function."""
    for rule in RULES:
        kinds = set()
        for label, text in blocks(rule):
            if label in ("Before", "Reported") and label not in kinds and many(text, 1) is not None:
                kinds.add(label)
                yield f"{rule.module.__name__.rpartition('.')[2]} {label}", rule.code, text


def many(text: str, times: int) -> str | None:
    """Return an example with its code in many functions, or None if it cannot stand in one."""
    lines, imports = text.split("\n"), 0
    for statement in ast.parse(text).body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            break
        imports = statement.end_lineno or 0
    made = lines[:imports]
    for number in range(times):
        made.append(f"def part_{number}(model, images, labels, x, y):")
        made += ["    " + line for line in lines[imports:]] + ["    pass"]
    try:
        ast.parse("\n".join(made))
    except SyntaxError:
        return None
    return "\n".join(made) + "\n"


def calls(code: str, text: str) -> int:
    """Return how many calls of functions, and steps of generators, the conversion of a text takes."""
    count = 0

    def step(frame: object, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(step)
    try:
        WITH.get(code, CONVERTER).convert(text.encode("utf-8"))
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.nightly
@pytest.mark.parametrize(
    "code,text",
    [pytest.param(code, text, id=name) for name, code, text in examples()] if sys.version_info > (3, 8) else [],
)
def test_twice_the_lines_take_twice_the_work(code: str, text: str) -> None:
    times = -(-_LEAST // text.count("\n"))
    calls(code, many(text, times) or "")  # what happens once in a process
    once, twice, fourfold = (calls(code, many(text, times * by) or "") for by in (2, 4, 8))
    assert fourfold - twice < 2.6 * (twice - once)
