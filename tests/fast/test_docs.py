"""The generated pages in git are current, the others can be made."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest
from convert_tf2npu.rules.registry import Registry

from npu_shim.troubles.table import troubles

pytestmark = pytest.mark.once


def make(repo_root: pathlib.Path, *arguments: str) -> str:
    """Run docs/make.py and return what it prints."""
    done = subprocess.run(
        [sys.executable, str(repo_root / "docs" / "make.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


def test_generated_pages_are_current(repo_root: pathlib.Path) -> None:
    make(repo_root, "--check")


def test_every_rule_gets_a_page_and_a_row_of_the_index(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    make(repo_root, "--rules", str(tmp_path / "rules"))
    rules = Registry().rules
    made = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "rules").iterdir()}
    assert sorted(made) == sorted([rule.code + ".md" for rule in rules] + ["README.md"])
    for rule in rules:
        title = rule.title.rstrip(".")
        assert f"# {rule.code}: {title}\n" in made[rule.code + ".md"]
        assert made[rule.code + ".md"].count("```") % 2 == 0
        found = [row for row in troubles() if rule.code in row.found_by]
        assert all(f"* [{row.symptom.en}](../troubles.md#{row.id})\n" in made[rule.code + ".md"] for row in found)
        assert f"| [{rule.code}]({rule.code}.md) | {rule.title} |\n" in made["README.md"]


def pages(repo_root: pathlib.Path) -> list[pathlib.Path]:
    """Return the pages that people read."""
    return [*repo_root.glob("*.md"), *(repo_root / "docs").glob("**/*.md")]


def test_no_page_links_to_the_pages_of_rules_which_are_not_in_git(repo_root: pathlib.Path) -> None:
    linked = [
        page.name
        for page in pages(repo_root)
        if page.parent.name != "rules"
        and re.search(r"\]\([^)]*rules/(?:NPU\d+|README)\.md", page.read_text(encoding="utf-8"))
    ]
    assert not linked


@pytest.mark.parametrize("name", ["options.md", "report-schema.md"])
def test_a_stale_page_is_found(repo_root: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    spec = importlib.util.spec_from_file_location("docs_make", str(repo_root / "docs" / "make.py"))
    assert spec is not None and spec.loader is not None
    docs_make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docs_make)
    wanted = docs_make.kept_pages()
    docs_make.write(str(tmp_path), wanted)
    assert docs_make.stale(str(tmp_path), wanted) == {}
    (tmp_path / name).write_text("old", encoding="utf-8")
    assert list(docs_make.stale(str(tmp_path), wanted)) == [name]
