"""The project speaks plain English: the worst of its old dialect does not come back."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

pytestmark = pytest.mark.once

SOURCES = ("npu_shim", "tools", "benchmarks", "docs", "fuzz", "samples", "tests")
PHRASES = re.compile(
    r"\b(?:is|are|was|were|be|been|being) told\b"
    r"|\bturn(?:s|ed|ing)? (?:\w+ )?over\b"
    r"|\bleft to (?:you|the user)\b"
    r"|\b(?:he|his|him|himself)\b"
    r"|\bwhereabouts\b|\bat hand\b",
    re.IGNORECASE,
)
FIRST = re.compile(r"(?:Whether|What|Whatever|Which|Who|Where|How|That|Of)\b(?!.*\?)")
TEST_NAME = re.compile(r"test_(?:what|whatever|where|whether|which|who|how)_|_(?:is|are)_told|_said_to_|_left_alone")


def texts(root: pathlib.Path) -> list[pathlib.Path]:
    files = [path for name in SOURCES for path in (root / name).rglob("*") if path.suffix in (".py", ".md", ".sh")]
    files += [path for path in root.glob("*.md")]
    skipped = root / "tests" / "fast" / "test_language.py"
    return sorted(path for path in files if path != skipped and ".envs" not in path.parts)


def test_no_phrase_of_the_old_dialect(repo_root: pathlib.Path) -> None:
    files = texts(repo_root)
    assert len(files) > 300
    found = [
        f"{path.relative_to(repo_root)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if PHRASES.search(line)
    ]
    assert found == []


def test_names_of_tests_are_statements(repo_root: pathlib.Path) -> None:
    found = [
        f"{path.relative_to(repo_root)}: {name}"
        for path in (repo_root / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
        if TEST_NAME.search(name)
    ]
    assert found == []


def test_no_docstring_begins_with_a_question_word(repo_root: pathlib.Path) -> None:
    found = []
    for path in texts(repo_root):
        if path.suffix != ".py" or "corpus" in path.parts:  # scripts for fuzzing, in the syntax of any Python
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node) or ""
                if FIRST.match(text.split("\n")[0]):
                    found.append(f"{path.relative_to(repo_root)}: {text.splitlines()[0]}")
    assert found == []
