"""Modules of docs/ for tests, and a program for the list of the record."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any

_DOCS = pathlib.Path(__file__).parents[1] / "docs"


def load(name: str) -> Any:
    """Return a module of docs/."""
    path = str(_DOCS)
    spec = importlib.util.spec_from_file_location(name, str(_DOCS / f"{name}.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path = [each for each in sys.path if each != path]
    return module


def entry(**changes: Any) -> Any:
    """A program with a planted defect."""
    record_list: Any = sys.modules["record_list"]  # once a script of the record is loaded
    defect = record_list.Defect("rate 2 % higher", [record_list.Edit("train.py", r"rate = 0\.1", "rate = 0.102")])
    program = record_list.Program("owner/name", "abc1234", "session", "1.15", "examples", "train.py", defect=defect)
    return program._replace(**changes)


def keep_results(tmp_path: pathlib.Path, monkeypatch: Any, programs: Any, *rows: Any) -> None:
    """Keep results of some programs in a folder of the test."""
    record_results: Any = sys.modules["record_results"]
    monkeypatch.setattr(record_results.verified, "HERE", str(tmp_path))
    (tmp_path / "record").mkdir(exist_ok=True)
    for row in rows:
        record_results.kept(programs).add(row)
