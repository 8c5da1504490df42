"""The files of npu-shim observe and migrate are what docs/facts.schema.json and docs/migrate.schema.json say."""

from __future__ import annotations

import json
import pathlib

from convert_tf2npu.facts.facts import Facts, ObservedRun
from convert_tf2npu.facts.seen import Block, FileFacts, Place, Seen

from npu_shim.rehearsal.migrating.migration import (
    FACTS,
    SOURCE,
    TAKEN_BACK,
    Migration,
    Observed,
    Rewrite,
    UnconvertedPlace,
)
from npu_shim.rehearsal.migrating.reports import WRITERS
from npu_shim.rehearsal.result import Result
from tests.schemas.test_dumps_schema import valid


def test_facts_are_valid(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    seen = Seen(1, 2)
    for value in (True, 3, 2.5, "float64", None, (32, None)):
        seen.note("value", value)
    file = FileFacts("0" * 64, {Block(1, 9): 1, Block(3, 4): 0}, {Place(3, 5, 3, 20, "rows"): seen})
    run = ObservedRun(("train.py", "--steps=3"), "2.15.1", "3.11.7", 3, "stopped")
    path = tmp_path / "facts.json"
    path.write_text(Facts(str(tmp_path), (run,), {"train.py": file}).to_text(str(path)), encoding="utf-8")
    assert valid(path, repo_root / "docs" / "facts.schema.json")["runs"][0]["steps"] == 3


def test_migrations_are_valid(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    example = json.loads((repo_root / "docs" / "verify_example.json").read_text(encoding="utf-8"))
    rewrites = [Rewrite("train.py", 3, 1, "NPU101", "made so", basis, 1) for basis in (SOURCE, FACTS, TAKEN_BACK)]
    left = [UnconvertedPlace("train.py", 4, 1, "NPU231", "do so", reached) for reached in (True, False)]
    observed = [Observed(["train.py"], "2.15.1", "3.11.7", 5, "returned")]
    result = Migration(
        "train.py", ["-v"], "out", "facts.json", observed, 2, 1, rewrites, left, Result.from_json(example), ["Why."]
    )
    path = tmp_path / "migrate.json"
    path.write_text(WRITERS["migrate.json"](result), encoding="utf-8")
    assert valid(path, repo_root / "docs" / "migrate.schema.json")["verified"]["verdict"] == example["verdict"]
