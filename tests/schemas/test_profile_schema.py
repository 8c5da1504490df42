"""The JSON of npu-shim profile is what docs/profile.schema.json and docs/profile_comparison.schema.json say."""

from __future__ import annotations

import json
import pathlib

from npu_shim.cli import main
from npu_shim.profiles.op_kinds import KINDS
from tests.profiles import card
from tests.profiles.planted import PLANTED, slow_rank
from tests.schemas.test_dumps_schema import valid


def test_profiles_and_comparisons_are_valid(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    schema = repo_root / "docs" / "profile.schema.json"
    slow_rank(tmp_path / "ranks")
    for name in ("Where", "many small ops"):
        card.write(tmp_path / name, card.run(PLANTED[name].make))
    (tmp_path / "sums").mkdir()
    sums = "Device_id,OP Type,Core Type,Count,Total Time(us)\n0,MatMul,AI_CORE,3,12.5\n"
    (tmp_path / "sums" / "op_statistic_20240101000000.csv").write_text(sums, encoding="utf-8")
    for folder in ("ranks", "Where", "many small ops", "sums"):
        out = tmp_path / f"{folder}.json"
        assert main(["profile", str(tmp_path / folder), "--json", str(out), "--product", "ascend910"]) == 0
        assert valid(out, schema)["types"]
    changed = tmp_path / "changed.json"
    assert main(["profile", str(tmp_path / "many small ops"), str(tmp_path / "Where"), "--json", str(changed)]) == 1
    assert valid(changed, repo_root / "docs" / "profile_comparison.schema.json")["step"]["verdict"] == "slower"
    finding = json.loads(schema.read_text(encoding="utf-8"))["properties"]["findings"]["items"]
    assert finding["properties"]["id"]["enum"] == sorted(KINDS)
