"""The table of troubles: each row is complete, is found by its lines only, and names a test that exists."""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re
from typing import Iterator

import pytest
from convert_tf2npu.rules.registry import Registry

from npu_shim.troubles import page
from npu_shim.troubles.logs import explain
from npu_shim.troubles.table import FINDERS, KINDS, PATTERN_TEST, Text, Trouble, titles, troubles

pytestmark = pytest.mark.once
PLAIN = re.compile(r"(?:[\w /:'\"=,<>#%&;!@~`-]|\\[.\[\](){}+*?|$^-]){4}")
CODES = {rule.code for rule in Registry().rules}


def problems(trouble: Trouble) -> Iterator[str]:
    """Yield what a row lacks."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", trouble.id) or trouble.kind not in KINDS or not trouble.source:
        yield "id, kind or source"
    for text in (trouble.symptom, trouble.cause, trouble.fix, trouble.how or Text("a", "b")):
        is_code = not re.search(r"[a-z]", re.sub(r"`[^`]+`", "", text.en))
        if not text.en or not text.zh or (text.en == text.zh and not is_code):
            yield f"a translation: {text.en}"
        if text.en.endswith(".") or text.zh.endswith("。") or "|" in text.en + text.zh or "\n" in text.en + text.zh:
            yield f"a form that fits a table: {text.en}"
        if sorted(re.findall(r"`[^`]+`", text.en)) != sorted(re.findall(r"`[^`]+`", text.zh)):
            yield f"the same code in both languages: {text.en}"
    if not (trouble.how or trouble.found_by or trouble.patterns):
        yield "the reason why only documentation helps"
    if "library" in trouble.found_by and not trouble.how:
        yield "what the library does"
    if not set(trouble.found_by) - set(FINDERS) <= CODES:
        yield "finders that exist"


def test_each_row_is_complete() -> None:
    assert [f"{row.id} lacks {problem}" for row in troubles() for problem in problems(row)] == []


def test_a_row_that_is_not_complete_is_noticed() -> None:
    row, code = troubles()[0], Text("`a` b", "乙")
    assert list(problems(row._replace(symptom=code))) == ["the same code in both languages: `a` b"]
    assert list(problems(row._replace(patterns=()))) == ["the reason why only documentation helps"]
    assert list(problems(row._replace(found_by=("NPU999", "library")))) == [
        "what the library does",
        "finders that exist",
    ]


def test_ids_and_symptoms_are_unique() -> None:
    for values in ([row.id for row in troubles()], [row.symptom.en for row in troubles()]):
        assert [value for value, count in collections.Counter(values).items() if count > 1] == []
    assert len(titles()) == len({title.zh for title in titles().values()})


def test_patterns_find_the_lines_of_their_row_only() -> None:
    patterns = [(row, pattern) for row in troubles() for pattern in row.patterns]
    assert len(patterns) > 250
    assert [pattern for _, pattern in patterns if not PLAIN.match(pattern)] == [], "less than four plain characters"
    assert [
        pattern for _, pattern in patterns if re.compile(pattern).groups or not re.match(r"[^\\]{2}", pattern)
    ] == []
    without = [pattern for row, pattern in patterns if not any(re.search(pattern, line) for line in row.lines)]
    assert without == [], "no line for these patterns"
    found = {line: ([trouble.id for trouble in explain(line)], [row.id]) for row in troubles() for line in row.lines}
    assert {line: ids for line, ids in found.items() if ids[0] != ids[1]} == {}


def test_the_test_of_each_row_exists(repo_root: pathlib.Path) -> None:
    assert [row.id for row in troubles() if not row.patterns and row.test == PATTERN_TEST] == []
    assert [
        row.test for row in troubles() if row.test.split("::")[1] not in names_in(repo_root / row.test.split("::")[0])
    ] == []


@functools.lru_cache(maxsize=None)
def names_in(path: pathlib.Path) -> set[str]:
    """Return the names of the tests in a file."""
    functions = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)
    ]
    return {function.name for function in functions if function.name.startswith("test_")}


def test_the_pages_have_each_row() -> None:
    for language in ("en", "zh"):
        text = page.markdown(language)
        assert all(f'| <a id="{row.id}"></a>{getattr(row.symptom, language)} | ' in text for row in troubles())
        assert re.findall(r"(?m)^## (.*)", text) == [getattr(title, language) for title in titles().values()]


def test_usual_lines_of_a_log_have_no_explanation() -> None:
    assert (
        explain("step 100, loss 0.25, 31.2 examples/s\n2024-05-01 08:00:00.100000: I tensorflow/core/x.cc:10] ok\n")
        == []
    )
