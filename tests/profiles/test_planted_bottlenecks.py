"""A planted bottleneck is found first and named, at its cost; a balanced step has none; all numbers can be recomputed."""

from __future__ import annotations

import contextlib
import csv
import pathlib
import sqlite3
from typing import Any

import pytest

from npu_shim.profiles import profile_reader
from npu_shim.profiles.profile_summary import to_page
from tests.profiles import card
from tests.profiles.planted import PLANTED, slow_link, slow_rank, told_waits
from tests.profiles.recompute import differences

pytestmark = [pytest.mark.once, pytest.mark.slow]


def result(folder: pathlib.Path) -> dict[str, Any]:
    """Return the page of a profile without problems."""
    found = to_page(profile_reader.read_profile(str(folder)), "profile").to_json()
    assert found["problems"] == []
    return found


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bottleneck_is_found_first(name: str, tmp_path: pathlib.Path) -> None:
    planted = PLANTED[name]
    card.write(tmp_path, card.run(planted.make))
    found = result(tmp_path)
    first, *others = found["findings"]
    assert first["id"] == planted.id, found["findings"]
    assert first["ms"] == pytest.approx(planted.us / 1000, rel=0.02)
    assert planted.text in str(first["evidence"]) and first["evidence"]
    assert not others, others
    if planted.id != "transfers":  # its rows are in task_time
        assert differences(str(tmp_path), found) == []


def test_a_loop_of_steps_leaves_the_host_less_than_a_twentieth_of_a_step(tmp_path: pathlib.Path) -> None:
    card.write(tmp_path, card.run(PLANTED["feed_dict"].make))
    found = result(tmp_path)
    first = found["findings"][0]
    (row,) = (row for row in first["evidence"] if row["what"].endswith(" steps in one call"))
    number, rest = int(row["what"].partition(" ")[0]), found["step"]["mean_ms"] - first["ms"]
    left = [first["ms"] / each for each in (number, number - 1)]
    assert row["ms"] == pytest.approx(left[0])
    assert left[0] <= 0.05 * (rest + left[0]) and left[1] > 0.05 * (rest + left[1])


def test_the_slow_rank_is_found_first(tmp_path: pathlib.Path) -> None:
    late = slow_rank(tmp_path)
    found = result(tmp_path)
    assert [each["id"] for each in found["findings"]] == ["slow-rank"] and found["device"] == "2"
    assert found["findings"][0]["ms"] == pytest.approx(late / 1000, rel=0.02)
    assert found["findings"][0]["evidence"][0]["what"] == "rank 2"
    assert [each["device"] for each in found["devices"]] == ["0", "1", "2", "3"]
    assert differences(str(tmp_path), found) == []


@pytest.mark.parametrize("cluster", [False, True], ids=["a file of each rank", "a file of all ranks"])
def test_messages_say_which_rank_waits_for_whom(cluster: bool, tmp_path: pathlib.Path) -> None:
    told_waits(tmp_path, cluster)
    found = {each["id"]: each for each in result(tmp_path)["findings"]}
    waits = [(row["what"], row["why"], row["ms"]) for row in found["slow-rank"]["evidence"]]
    assert waits == [("rank 0", "waits for rank 2", 2.5), ("rank 1", "waits for rank 2", 1.5)]
    assert found["slow-rank"]["ms"] == 2.0 and found["few-messages"]["ms"] == pytest.approx(4 - 2.5, rel=0.02)


@pytest.mark.parametrize("export", ["base", "timeline", "messages"])
def test_the_slow_link_is_found_first(export: str, tmp_path: pathlib.Path) -> None:
    late = slow_link(tmp_path, export)
    first = result(tmp_path)["findings"][0]
    assert first["id"] == "slow-link" and first["evidence"][0]["what"] == "rank 3 to 0"
    assert first["ms"] == pytest.approx(late / 1000, rel=0.02)


@pytest.mark.parametrize("version", [5, 6, 7, 8, 9])
def test_a_balanced_step_has_no_bottleneck_in_the_columns_of_any_version(version: int, tmp_path: pathlib.Path) -> None:
    rank = card.run(lambda number: card.balanced())
    card.write(tmp_path / "a" / "b", rank, version)
    found = result(tmp_path)
    assert found["findings"] == [] and found["step"]["source"] == "step_trace" and found["step"]["number"] == 11
    card.write(tmp_path / "again", rank, 8)
    assert {**found, "files": {}} == {**result(tmp_path / "again"), "files": {}}


def test_phases_are_what_the_exporter_computes(tmp_path: pathlib.Path) -> None:
    """The formulas of its step trace: card.write has them from the source of the exporter."""
    place = card.write(tmp_path, card.run(PLANTED["no overlap"].make))
    with open(next(iter(place.glob("step_trace*.csv"))), encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))[1:]
    found = result(tmp_path)
    columns = ("Data Aug Bound(us)", "FP to BP Time(us)", "Iteration Refresh(us)")
    for phase, column in zip(found["phases"], columns):
        assert phase["ms"] == pytest.approx(sum(float(row[column]) for row in rows) / len(rows) / 1000, rel=1e-9)
    mean = sum(float(row["Iteration Time(us)"]) for row in rows) / len(rows) / 1000
    assert found["step"]["mean_ms"] == pytest.approx(mean, rel=1e-9)
    assert sum(phase["ms"] for phase in found["phases"]) == pytest.approx(mean, rel=1e-9)
    assert sum(wait["ms"] for wait in found["waits"]) == pytest.approx(mean, rel=1e-9)


def test_data_bases_and_timelines_say_the_same_as_tables(tmp_path: pathlib.Path) -> None:
    rank = card.run(PLANTED["Where"].make)
    card.write(tmp_path / "tables", rank)
    card.write_database(tmp_path / "base" / "PROF_000001_1_A" / "msprof_20240101000000.db", rank)
    card.write_timeline(
        tmp_path / "timeline" / "PROF_000001_1_A" / "mindstudio_profiler_output" / "msprof_20240101000000.json", rank
    )
    tables, base, timeline = (result(tmp_path / name) for name in ("tables", "base", "timeline"))
    for other in (base, timeline):
        assert [each["id"] for each in other["findings"]] == ["ai-cpu"]
        assert other["findings"][0]["ms"] == pytest.approx(tables["findings"][0]["ms"], rel=1e-3)
        ours = {(row["name"], row["type"]): row["ms"] for row in other["ops"]}
        assert ours == pytest.approx({(row["name"], row["type"]): row["ms"] for row in tables["ops"]}, rel=1e-3)
    assert base["step"] == {**tables["step"], "source": "STEP_TIME"}


def test_collectives_of_a_data_base_have_the_device_of_its_tasks(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "PROF_000001_1_A" / "msprof_20240101000000.db"
    card.write_database(path, card.run(PLANTED["no overlap"].make))
    whole = result(tmp_path)
    with contextlib.closing(sqlite3.connect(str(path))) as base:  # as CANN 8 writes it
        base.execute("CREATE TABLE other AS SELECT opName, startNs, endNs, groupName FROM COMMUNICATION_OP")
        base.execute("DROP TABLE COMMUNICATION_OP")
        base.execute("ALTER TABLE other RENAME TO COMMUNICATION_OP")
        base.commit()
    found = result(tmp_path)
    assert {**found, "types": []} == {**whole, "types": [], "ops": found["ops"], "findings": found["findings"]}
    assert found["findings"][0]["ms"] == whole["findings"][0]["ms"]
