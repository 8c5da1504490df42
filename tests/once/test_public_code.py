"""The tool over public packages of TensorFlow 1 code; they are fetched by name and hash."""

from __future__ import annotations

import ast
import importlib.util
import os
import pathlib
import sys
import warnings
from typing import Any, Dict

import pytest
from convert_tf2npu.engine.results import Calls
from convert_tf2npu.engine.run import Run, write_migrated_copy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
from option_table import ROWS as MODES  # noqa: E402

Runs = Dict[str, Dict[str, Run]]
WITH_LARGE = ("", "-d tf_strategy")
LARGE = 300  # files


def _script(root: pathlib.Path) -> Any:
    spec = importlib.util.spec_from_file_location("make_shares", str(root / "docs" / "make_shares.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shares(repo_root: pathlib.Path) -> Any:
    """The script that measures."""
    return _script(repo_root)


@pytest.fixture(scope="module")
def sources(shares: Any, tmp_path_factory: Any) -> dict[str, str]:
    """The packages' folders."""
    return shares.fetch(str(tmp_path_factory.mktemp("packages")))


@pytest.fixture(scope="module")
def runs(shares: Any, sources: dict[str, str]) -> Runs:
    """Return the result of each package in each mode; large packages only in two modes, which saves time."""
    found: Runs = {mode: {} for mode in MODES}
    for name, path in sources.items():
        for mode in MODES:
            if mode in WITH_LARGE or len(found[""][name].results) < LARGE:
                found[mode][name] = shares.convert(path, mode.split())
    return found


def test_no_file_is_too_much(runs: Runs) -> None:
    wrong: list[str] = []
    for mode, packages in runs.items():
        assert len(packages) > 3
        for name, run in packages.items():
            assert len(run.results) > 10 and Calls.sum(r.calls for _, r in run.results).total > 100, name
            for entry, result in run.results:
                wrong += [
                    f"{mode} {name} {entry.relative}: {d.message}"
                    for d in result.diagnostics
                    if "tool itself" in d.message or result.unreadable
                ]
    assert wrong == []


def test_a_copy_differs_in_changed_files_alone_and_a_second_run_changes_nothing(
    shares: Any, runs: Runs, tmp_path: pathlib.Path
) -> None:
    changed = 0
    for mode in MODES:
        for name, run in runs[mode].items():
            if mode and run.new_bytes_by_path == runs[""][name].new_bytes_by_path:
                continue  # the mode had nothing to do, and what comes out was tried
            target = tmp_path / str(len(os.listdir(str(tmp_path))))
            assert write_migrated_copy(run, str(target), force=False) == []
            for entry in run.tree.entries:
                written = (target / entry.relative).read_bytes()
                new = run.new_bytes_by_path.get(entry.relative)
                if new is None:
                    with open(entry.path, "rb") as stream:
                        assert written == stream.read(), entry.relative
                else:
                    changed += 1
                    assert written == new
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of the package's own escapes
                        ast.parse(written)
            assert sorted(shares.convert(str(target), mode.split()).new_bytes_by_path) == [], (mode, name)
    assert changed > 100


def test_the_page_says_what_is_measured(shares: Any, runs: Runs) -> None:
    assert shares.stale(shares.rows(runs[""])) == []


def test_a_share_that_differs_from_the_page_is_reported(shares: Any) -> None:
    (line,) = shares.stale([shares.Row("all", 1, Calls(0, 0, 1))])
    assert line.startswith("all: the page has ") and line.endswith(" %, the measurement 0.0 / 0.0 / 100.0 %")
    assert shares.stale([shares.Row("nobody==1", 1, Calls(1, 0, 0))]) == ["nobody==1 is not in the table"]


def test_packages_that_cannot_be_downloaded_are_an_error(shares: Any, tmp_path: pathlib.Path, monkeypatch) -> None:
    wrong = tmp_path / "wrong.txt"
    with open(shares.PACKAGES) as stream:
        line = next(line for line in stream if line.startswith("bert"))
    wrong.write_text(line[:-5] + "aaaa\n")
    monkeypatch.setattr(shares, "PACKAGES", str(wrong))
    with pytest.raises(RuntimeError, match="Check the access to PyPI and the hashes"):
        shares.fetch(str(tmp_path / "to"))
