"""docs/make_public_paths.py: the table in the page has its repositories, and its parts edit, render and write."""

from __future__ import annotations

import gzip
import importlib.util
import pathlib
import struct
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.once


def load(repo_root: pathlib.Path, name: str) -> Any:
    """Return a module of docs/."""
    path = str(repo_root / "docs")
    spec = importlib.util.spec_from_file_location(name, str(repo_root / "docs" / f"{name}.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path = [each for each in sys.path if each != path]
    return module


@pytest.fixture
def paths(repo_root: pathlib.Path) -> Any:
    """The script."""
    return load(repo_root, "make_public_paths")


@pytest.fixture
def row(paths: Any) -> Any:
    """A row of one process and two ranks."""
    return paths.Row(300, 2, 5, 1, 20, "agree", 0.0, "agree", 3.4e-5, [8.4, 2.6, 49.5, 83.0], (0.0671, 0.0649))


def test_the_page_has_a_row_of_each_repository_as_the_script_writes_it(repo_root: pathlib.Path, paths: Any) -> None:
    page = (repo_root / "docs" / "public-code.md").read_text(encoding="utf-8")
    table = page.split(paths._BEGIN)[1].split(paths._END)[0]
    head, _, *rows = [line.strip("|").split(" | ") for line in table.splitlines()]
    assert [each.strip() for each in head] == list(paths._COLUMNS)
    assert len(rows) == len(paths.REPOSITORIES) == 6
    for cells, repository in zip(rows, paths.REPOSITORIES):
        assert len(cells) == len(paths._COLUMNS)
        address = f"https://github.com/{repository.name}/tree/{repository.commit}"
        assert cells[0].strip().startswith(f"[{repository.name}]({address}) `")
        assert [cells[1], cells[2], cells[5]] == [repository.kind, repository.tensorflow, repository.review]
        assert (cells[7] == repository.reason) == (repository.ranks is None)


def test_the_page_names_what_was_changed_for_the_table(repo_root: pathlib.Path, paths: Any) -> None:
    page = (repo_root / "docs" / "public-code.md").read_text(encoding="utf-8")
    for repository in paths.REPOSITORIES:
        if repository.tolerance:
            assert f"`--tolerance {repository.tolerance}`" in page.replace("\n", " "), repository.name


def test_a_row_shows_rounded_figures(paths: Any, row: Any) -> None:
    first = paths.REPOSITORIES[0]
    cells = paths.line(first, row).strip("| ").split(" | ")
    assert cells[3:] == [
        "300, 2",
        "5, 1",
        first.review,
        "20 steps, equal bit by bit",
        "3e-05",
        "8, 3, 50, 83",
        "67, 65",
    ]


def test_a_row_without_ranks_has_the_reason_and_one_that_differs_says_so(paths: Any, row: Any) -> None:
    (triplets,) = [each for each in paths.REPOSITORIES if each.reason == "triplets of a batch"]
    made = row._replace(verdict="differ", difference=0.25, ranks_verdict=None, seconds=row.seconds[:3])
    cells = paths.line(triplets, made).strip("| ").split(" | ")
    assert cells[6:9] == ["20 steps, differ, 2e-01", "triplets of a batch", "8, 3, 50, -"]


def test_writing_a_row_keeps_the_others(paths: Any, row: Any, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(paths, "PAGE", str(page))
    page.write_text(f"before\n{paths._BEGIN}| old |\n| --- |\n{paths._END}after <!-- end -->\n", encoding="utf-8")
    first, second = paths.REPOSITORIES[:2]
    for repository, steps in ((second, 1), (first, 2), (second, 3)):
        paths.write(repository, paths.line(repository, row._replace(steps=steps)))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{paths._BEGIN}| repository, script |") and text.endswith("after <!-- end -->\n")
    written = [line.split(" | ") for line in text.splitlines() if line.startswith("| [")]
    assert [cells[0].split("]")[0] for cells in written] == [f"| [{first.name}", f"| [{second.name}"]
    assert [cells[6].split(",")[0] for cells in written] == ["2 steps", "3 steps"]


def test_an_edit_that_changes_nothing_is_an_error(paths: Any, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_bytes(b"epochs = 200\r\n")
    paths.edit(str(tmp_path), [paths.Edit("train.py", r"epochs = \d+", "epochs = 2")])
    assert script.read_bytes() == b"epochs = 2\r\n"
    with pytest.raises(ValueError, match=r"train\.py: the edit 'batch' changes nothing"):
        paths.edit(str(tmp_path), [paths.Edit("train.py", "batch", "")])


def test_the_digits_have_the_format_of_mnist(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    data = load(repo_root, "public_data")
    data.main(["digits", str(tmp_path / "a" / "b"), "20", "10", "gz"])
    with gzip.open(str(tmp_path / "a" / "b" / "t10k-images-idx3-ubyte.gz")) as stream:
        images = stream.read()
    with gzip.open(str(tmp_path / "a" / "b" / "train-labels-idx1-ubyte.gz")) as stream:
        labels = stream.read()
    assert struct.unpack(">IIII", images[:16]) == (2051, 10, 28, 28) and len(images) == 16 + 10 * 28 * 28
    assert struct.unpack(">II", labels[:8]) == (2049, 20) and set(labels[8:]) <= set(range(10))
