"""Our figures of a profile and what the vendor's analysis reads in the same data base; our two readers of tables."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest
from msprof_analyze.prof_common.constant import Constant
from msprof_analyze.prof_exports.compute_op_sum_export import ComputeOpSumExport
from msprof_analyze.prof_exports.hccl_sum_export import HcclSumExport

from npu_shim.profiles import profile_reader, tables
from npu_shim.profiles.op_kinds import COMMUNICATION
from npu_shim.profiles.profile_summary import to_page
from tests.profiles import card
from tests.profiles.planted import PLANTED


def test_calls_and_times_are_those_of_the_vendor(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db"
    card.write_database(path, card.run(PLANTED["messages by the hundred"].make, steps=4))
    (device,) = profile_reader.read_profile(str(tmp_path)).devices
    ours: dict[tuple[str, str], list[int]] = {}
    for number, each in enumerate(device.signatures):
        runs = device.code == number
        core = "" if device.category[number] == COMMUNICATION else each.core
        sums = ours.setdefault((each.type, core), [0, 0])
        sums[0] += int(np.count_nonzero(runs))
        sums[1] += int((device.end - device.start)[runs].sum())
    theirs: dict[tuple[str, str], list[int]] = {}
    for export in (ComputeOpSumExport, HcclSumExport):
        found = export(str(path), "", {Constant.START_NS: 0, Constant.END_NS: 1 << 62}).read_export_db()
        for row in found.to_dict("records"):
            sums = theirs.setdefault((row["OpType"], row.get("TaskType", "")), [0, 0])
            sums[0] += 1
            sums[1] += int(row["Duration"])
    assert theirs == ours and ("hcom_allReduce_", "") in ours


@pytest.mark.parametrize("version", [5, 7, 9])
def test_pyarrow_and_csv_read_the_same(version: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card.write(tmp_path, card.run(PLANTED["casts"].make), version)
    found = to_page(profile_reader.read_profile(str(tmp_path)), "").to_json()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert to_page(profile_reader.read_profile(str(tmp_path)), "").to_json() == found and found["problems"] == []


def test_csv_reads_on_where_pyarrow_meets_a_broken_row(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BLOCK", 1 << 12)
    (path,) = card.write(tmp_path, card.run(PLANTED["casts"].make)).glob("op_summary*")
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:300], lines[300][:40], "", *lines[301:]]), encoding="utf-8")
    found = to_page(profile_reader.read_profile(str(tmp_path)), "").to_json()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert to_page(profile_reader.read_profile(str(tmp_path)), "").to_json() == found
    assert [each["problem"][:20] for each in found["problems"]] == ["1 rows are broken an"]
