"""The table of troubles: each row is complete, is found by its lines only, and names a test that exists."""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re

import pytest
from convert_tf2npu.rules.registry import Registry

from npu_shim.troubles import page
from npu_shim.troubles.logs import explain
from npu_shim.troubles.table import FINDERS, KINDS, PATTERN_TEST, Text, Trouble, titles, troubles

pytestmark = pytest.mark.once
PLAIN = re.compile(r"(?:[\w /:'\"=,<>#%&;!@~`-]|\\[.\[\](){}+*?|$^-]){4}")
each_row = pytest.mark.parametrize("trouble", troubles(), ids=lambda trouble: trouble.id)


@each_row
def test_a_row_is_complete(trouble: Trouble) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", trouble.id) and trouble.kind in KINDS and trouble.source
    for text in (trouble.symptom, trouble.cause, trouble.fix, trouble.how or Text("a", "b")):
        is_code = not re.search(r"[a-z]", re.sub(r"`[^`]+`", "", text.en))
        assert text.en and text.zh and (text.en != text.zh or is_code), text
        assert not text.en.endswith(".") and not text.zh.endswith("。"), text
        assert sorted(re.findall(r"`[^`]+`", text.en)) == sorted(re.findall(r"`[^`]+`", text.zh)), text
        assert "|" not in text.en + text.zh and "\n" not in text.en + text.zh
    assert trouble.how or trouble.found_by or trouble.patterns, "say why only documentation helps"
    assert trouble.how or "library" not in trouble.found_by, "say what the library does"
    assert set(trouble.found_by) - set(FINDERS) <= {rule.code for rule in Registry().rules}


def test_ids_and_symptoms_are_unique() -> None:
    for values in ([row.id for row in troubles()], [row.symptom.en for row in troubles()]):
        assert [value for value, count in collections.Counter(values).items() if count > 1] == []
    assert len(titles()) == len({title.zh for title in titles().values()})


@each_row
def test_patterns_find_the_lines_of_their_row_only(trouble: Trouble) -> None:
    for pattern in trouble.patterns:
        assert PLAIN.match(pattern), f"begins with less than four plain characters: {pattern}"
        assert any(re.search(pattern, line) for line in trouble.lines), f"no line for {pattern}"
    assert bool(trouble.lines) == bool(trouble.patterns)
    for line in trouble.lines:
        assert [row.id for row in explain(line)] == [trouble.id], line


@functools.lru_cache(maxsize=None)
def names_in(path: pathlib.Path) -> set[str]:
    """Return the names of the tests in a file."""
    return {
        node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)
    }


@each_row
def test_the_test_of_a_row_exists(trouble: Trouble, repo_root: pathlib.Path) -> None:
    path, name = trouble.test.split("::")
    assert trouble.patterns or trouble.test != PATTERN_TEST
    assert name.startswith("test_") and name in names_in(repo_root / path), trouble.test


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
