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

from npu_shim.troubles.logs import troubles_in_text
from npu_shim.troubles.table import FINDERS, KINDS, PATTERN_TEST, Text, Trouble, topic_titles, troubles

pytestmark = pytest.mark.once
PLAIN = re.compile(r"(?:[\w /:'\"=,<>#%&;!@~`-]|\\[.\[\](){}+*?|$^-]){4}")
# Words that tests of all kinds have.
COMMON = set(
    """after again another before beside both each else false first from have import into make name none once only other
    over same script self session shell start take test than that their them there they this train true under value when
    which with without tensorflow npu shim""".split()
)
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
    assert len(topic_titles()) == len({title.zh for title in topic_titles().values()})


def test_patterns_find_the_lines_of_their_row_only() -> None:
    patterns = [(row, pattern) for row in troubles() for pattern in row.patterns]
    assert len(patterns) > 250
    assert [pattern for _, pattern in patterns if not PLAIN.match(pattern)] == [], "less than four plain characters"
    assert [
        pattern for _, pattern in patterns if re.compile(pattern).groups or not re.match(r"[^\\]{2}", pattern)
    ] == []
    without = [pattern for row, pattern in patterns if not any(re.search(pattern, line) for line in row.lines)]
    assert without == [], "no line for these patterns"
    found = {
        line: ([trouble.id for trouble in troubles_in_text(line)], [row.id]) for row in troubles() for line in row.lines
    }
    assert {line: ids for line, ids in found.items() if ids[0] != ids[1]} == {}


def test_the_test_of_each_row_exists(repo_root: pathlib.Path) -> None:
    assert [row.id for row in troubles() if not row.patterns and row.test == PATTERN_TEST] == []
    assert [row.test for row in troubles() if not source_of(repo_root, row.test)] == []


def test_the_test_of_a_command_or_of_the_library_is_about_the_trouble(repo_root: pathlib.Path) -> None:
    """Rules have scripts instead: tests/convert/test_troubles_of_rules.py."""
    checked = [row for row in troubles() if set(row.found_by) & set(FINDERS)]
    assert len(checked) > 40
    assert [row.id for row in checked if row.test == PATTERN_TEST or row.test.startswith("tests/convert/")] == []
    assert [row.id for row in checked if not subjects(row) & set(words(source_of(repo_root, row.test)))] == []


def test_a_test_about_something_else_is_noticed(repo_root: pathlib.Path) -> None:
    by_id = {row.id: row for row in troubles()}
    other = words(source_of(repo_root, by_id["no-hccn-conf"].test))
    assert not subjects(by_id["options-after-open"]) & set(other)
    assert source_of(repo_root, "tests/fast/test_troubles.py::test_that_is_not_there") == ""


def subjects(row: Trouble) -> set[str]:
    """Return the words that a test about a trouble has some of: names in its texts, and the words of symptom and id."""
    texts = [text.en for text in (row.symptom, row.cause, row.fix, row.how) if text]
    names = " ".join(code for text in texts for code in re.findall(r"`([^`]+)`", text))
    return set(words(f"{names} {row.symptom.en} {row.id}")) - COMMON


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]\w{2,}[a-rt-z\d]", text.lower().replace("_", " "))  # without the s of a plural


@functools.lru_cache(maxsize=None)
def source_of(root: pathlib.Path, test: str) -> str:
    """Return the code of a test with all of its file that it names, an empty string if there is no such test."""
    path, name = test.split("::")
    text = (root / path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    defined: dict[str, ast.stmt] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        defined.update((target.id, node) for target in targets if isinstance(target, ast.Name))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined[node.name] = node
    waiting: list[ast.stmt] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    parts: list[ast.AST] = []
    while waiting:
        part = waiting.pop()
        if part not in parts:
            parts += [part, *getattr(part, "decorator_list", [])]
            mentioned = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
            waiting += [defined[one] for one in mentioned & defined.keys()]
    return "\n".join(ast.get_source_segment(text, part) or "" for part in parts)


def test_the_pages_have_each_row(repo_root: pathlib.Path) -> None:
    for language, folder in (("en", "docs"), ("zh", "docs/zh")):
        text = (repo_root / folder / "troubles.md").read_text(encoding="utf-8")
        assert all(f'| <a id="{row.id}"></a>{getattr(row.symptom, language)} | ' in text for row in troubles())
        assert re.findall(r"(?m)^## (.*)", text)[1:] == [getattr(title, language) for title in topic_titles().values()]


def test_usual_lines_of_a_log_have_no_explanation() -> None:
    assert (
        troubles_in_text(
            "step 100, loss 0.25, 31.2 examples/s\n2024-05-01 08:00:00.100000: I tensorflow/core/x.cc:10] ok\n"
        )
        == []
    )
