"""The tool over every Python file that is installed here, TensorFlow's own among them, and with all its options."""

from __future__ import annotations

import ast
import os
import pathlib
import sysconfig
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.results import TOOL_FAILS
from convert_tf2npu.engine.run import convert_source, write_migrated_copy
from option_table import ROWS, settings


class Seen(NamedTuple):
    """The result of some files: their number, how many changed, and the errors."""

    files: int
    changed: int
    wrong: tuple[str, ...]


def look(paths: list[str]) -> Seen:
    """Convert files, and convert what comes out again."""
    converter = Converter()
    changed = 0
    wrong: list[str] = []
    for path in paths:
        with open(path, "rb") as stream:
            raw = stream.read()
        result = converter.convert(raw)
        wrong += [f"{path}: {d.message}" for d in result.diagnostics if "tool itself" in d.message]
        if result.new is None:
            continue
        changed += 1
        if b"tensorflow" not in raw and b"keras" not in raw:
            wrong.append(f"{path}: changed, and has nothing of TensorFlow")
        if converter.convert(result.new).new is not None:
            wrong.append(f"{path}: a second run changes it again")
    return Seen(len(paths), changed, tuple(wrong))


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.nightly)], ids=["a fifth of the files", "all"])
def test_no_file_is_too_much_and_a_second_run_changes_nothing(step: int) -> None:
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(sysconfig.get_paths()["purelib"])
        for name in names
        if name.endswith(".py")
    )[::step]
    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        seen = list(pool.map(look, [paths[start :: workers * 4] for start in range(workers * 4)]))
    assert [text for one in seen for text in one.wrong] == []
    assert sum(one.files for one in seen) == len(paths) > 3000 / step
    assert sum(one.changed for one in seen) > 20 / step


PACKAGES = sysconfig.get_paths()["purelib"]
ESTIMATOR = os.path.join("tensorflow_estimator", "python", "estimator")
# The files of a folder know of each other, so a row of options takes a whole folder.
FOLDERS: list[Any] = [(os.path.join(ESTIMATOR, "inputs"), row) for row in ROWS]
FOLDERS += [pytest.param(ESTIMATOR, row, marks=pytest.mark.nightly) for row in ROWS]


@pytest.mark.parametrize("folder, row", FOLDERS)
def test_a_package_with_all_options(folder: str, row: str, tmp_path: pathlib.Path) -> None:
    run = convert_source(os.path.join(PACKAGES, folder), settings(row), jobs=1)
    copy = tmp_path / folder  # with the names of the folders around it, by which its files import each other
    copy.parent.mkdir(parents=True)
    assert write_migrated_copy(run, str(copy), force=False) == []
    again = convert_source(str(copy), settings(row), jobs=1)
    said = [(e.relative, d.message) for each in (run, again) for e, r in each.results for d in r.diagnostics]
    assert [each for each in said if TOOL_FAILS in each[1]] == []
    for new in run.new_bytes_by_path.values():
        ast.parse(new)
    assert sorted(again.new_bytes_by_path) == [] and len(run.results) > 5
