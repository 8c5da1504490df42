"""The Chinese pages say what the English ones say: same headings, code blocks, links, and code in each row of the tables."""

from __future__ import annotations

import pathlib
import re

import pytest

pytestmark = pytest.mark.once

_PAGES = (
    "accuracy",
    "assess",
    "predict",
    "compatibility",
    "cookbook",
    "distributed",
    "export",
    "from-npu-bridge",
    "from-tpuestimator",
    "horovod",
    "kernels",
    "launch",
    "migrate",
    "migrate-tf1",
    "migrate-tf2",
    "on_a_card",
    "options",
    "performance",
    "porting",
    "precision",
    "record",
    "reference",
    "report-schema",
    "start",
    "static-shapes",
    "tensorflow2",
    "troubles",
    "vendor-differences",
    "verify",
)
PAIRS = {
    "README.zh-CN.md": "README.md",
    **{f"docs/zh/{name}.md": f"docs/{name}.md" for name in _PAGES},
}
_BLOCK = re.compile(r"(?ms)^```.*?^```$")


def text(path: pathlib.Path) -> str:
    """Return a page without comments."""
    return re.sub(r"(?s)<!--.*?-->\n?", "", path.read_text(encoding="utf-8"))


def headings(page: str) -> list[int]:
    """Return the levels of the headings."""
    return [len(marks) for marks in re.findall(r"(?m)^(#+) ", _BLOCK.sub("", page))]


def tables(page: str) -> list[list[list[str]]]:
    """Return the cells of each table's rows."""
    found: list[list[list[str]]] = []
    inside = False
    for line in _BLOCK.sub("", page).split("\n"):
        if line.startswith("|"):
            if not inside:
                found.append([])
            found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        inside = line.startswith("|")
    return found


def code(words: str) -> list[str]:
    """Return the inline code, in any order: the order of words differs between the languages."""
    return sorted(re.findall(r"`[^`]+`", words))


def targets(folder: pathlib.Path, page: str) -> list[str]:
    """Return the files that a page links to; a translated page counts as its original."""
    found = []
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page):
        path = pathlib.PurePosixPath(*(folder / target).resolve().parts[-3:])
        found.append(path.name.replace(".zh-CN", ""))
    return sorted(set(found) - {"README.md"})  # each language links to the other


def differences(repo_root: pathlib.Path, chinese: str, english: str) -> list[str]:
    """Return the parts in which a translation differs."""
    ours, theirs = (repo_root / chinese), (repo_root / english)
    here, there = text(ours), text(theirs)
    found = [] if headings(here) == headings(there) else [f"headings: {headings(here)}, {headings(there)}"]
    if _BLOCK.findall(here) != _BLOCK.findall(there):
        found += [f"block: {a}" for a in set(_BLOCK.findall(here)) ^ set(_BLOCK.findall(there))] or ["order of blocks"]
    if len(tables(here)) != len(tables(there)):
        found.append(f"{len(tables(here))} tables, {len(tables(there))}")
    for mine, yours in zip(tables(here), tables(there)):
        if len(mine) != len(yours) or {len(row) for row in mine} != {len(row) for row in yours}:
            found.append(f"rows or columns of the table that begins with {mine[0]}")
        found += [
            f"row {row}: {code(' '.join(row))} instead of {code(' '.join(other))}"
            for row, other in zip(mine, yours)
            if code(row[0]) != code(other[0]) or code(" ".join(row)) != code(" ".join(other))
        ]
    if targets(ours.parent, here) != targets(theirs.parent, there):
        found.append(f"links: {set(targets(ours.parent, here)) ^ set(targets(theirs.parent, there))}")
    prose = [re.sub(r"(?m)^\|.*$", "", _BLOCK.sub("", page)) for page in (here, there)]
    if code(prose[0]) != code(prose[1]):
        found.append(f"code in the text: {sorted(set(code(prose[0])) ^ set(code(prose[1])))}, or its number")
    return found


@pytest.mark.parametrize("chinese", PAIRS)
def test_the_chinese_page_is_in_step(repo_root: pathlib.Path, chinese: str) -> None:
    assert differences(repo_root, chinese, PAIRS[chinese]) == []


def test_all_chinese_pages_are_compared(repo_root: pathlib.Path) -> None:
    pages = {str(path.relative_to(repo_root)) for path in [*repo_root.glob("*.zh-CN.md"), *repo_root.glob("docs/zh/*")]}
    assert pages == set(PAIRS)


@pytest.mark.parametrize(
    "before, after, found",
    [
        ("npu-shim run train.py", "npu-shim run other.py", "block: "),
        ("\n## ", "\n### ", "headings: "),
        ("| `digits_session`", "| `digits`", "row "),
        ("(assess.md)", "(porting.md)", "links: "),
        ("`npu-shim doctor`", "`npu-shim`", "code in the text"),
    ],
)
def test_a_change_of_one_language_is_found(
    repo_root: pathlib.Path, tmp_path: pathlib.Path, before: str, after: str, found: str
) -> None:
    for page in ("docs/zh/start.md", "docs/start.md"):
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text((repo_root / page).read_text(encoding="utf-8"), encoding="utf-8")
    chinese = tmp_path / "docs" / "zh" / "start.md"
    assert before in chinese.read_text(encoding="utf-8")
    chinese.write_text(chinese.read_text(encoding="utf-8").replace(before, after, 1), encoding="utf-8")
    assert any(part.startswith(found) for part in differences(tmp_path, "docs/zh/start.md", "docs/start.md"))
