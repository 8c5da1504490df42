"""Files of facts: written, merged, refused."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Iterator

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.checks import check_facts
from convert_tf2npu.facts.facts import Facts, ObservedRun, digest, read_facts
from convert_tf2npu.facts.seen import MOST_DISTINCT, Block, FileFacts, Place, Seen, Values
from convert_tf2npu.files.errors import UsageError
from convert_tf2npu.main import main
from convert_tf2npu.rules.base import Change, Context
from convert_tf2npu.rules.dynamic_shape import boolean_mask
from convert_tf2npu.semantics.model import Call

SCRIPT = b"import tensorflow as tf\n"
PLACE = Place(3, 5, 3, 20, "rows")
RUN = ObservedRun(("train.py", "--steps=3"), "2.15.1", "3.11.7", 3, "returned")


def facts_of(root: pathlib.Path, *rows: int) -> Facts:
    """Return the facts of one run, in which an expression had these numbers of rows."""
    seen = Seen(1, len(rows))
    for number in rows:
        seen.note("rows", number)
    file = FileFacts(digest(SCRIPT), {Block(1, 9): 1, Block(4, 6): 0}, {PLACE: seen} if rows else {})
    return Facts(str(root), (RUN,), {"train.py": file})


def written(root: pathlib.Path, facts: Facts) -> pathlib.Path:
    (root / "train.py").write_bytes(SCRIPT)
    path = root / "facts.json"
    path.write_text(facts.to_text(str(path)))
    return path


def test_facts_are_read_as_they_were_written(tmp_path: pathlib.Path) -> None:
    facts = read_facts(str(written(tmp_path, facts_of(tmp_path, 3, 7, 3))))
    seen = facts.files["train.py"].seen[PLACE]
    assert facts.runs == (RUN,)
    assert (seen.runs, seen.times, seen.all("rows"), seen.only("rows")) == (1, 3, (3, 7), None)
    assert seen.greatest("rows") == 7
    assert [facts.files["train.py"].runs_at(line) for line in (2, 5)] == [1, 0]


def test_runs_that_ended_inside_of_a_block_count_for_its_first_lines() -> None:
    blocks = {Block(1, 20): 1, Block(1, 9): 2, Block(4, 6): 0}
    assert [FileFacts("", blocks).runs_at(line) for line in (2, 5, 9, 10)] == [3, 0, 3, 1]


def test_it_is_unknown_if_lines_ran_that_were_not_watched() -> None:
    assert FileFacts(digest(SCRIPT)).runs_at(1) is None


def test_runs_are_merged(tmp_path: pathlib.Path) -> None:
    facts = facts_of(tmp_path, 3)
    facts.update(facts_of(tmp_path, 9))
    facts.update(facts_of(tmp_path))
    file = facts.files["train.py"]
    assert (len(facts.runs), file.runs_at(2), file.seen[PLACE].runs, file.seen[PLACE].all("rows")) == (3, 3, 2, (3, 9))


def test_files_around_each_observed_script_are_known_to_be_never_loaded(tmp_path: pathlib.Path) -> None:
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder in folders:
        folder.mkdir()
        (folder / "train.py").write_bytes(SCRIPT)
    facts = facts_of(folders[0])
    assert "other_roots" not in facts.content_without_checksum(".")  # as versions before wrote it
    facts.update(facts_of(folders[1]))
    facts.update(facts_of(folders[1]))
    facts = read_facts(str(written(folders[0], facts)))
    assert facts.other_roots == (str(folders[1]),) and sorted(facts.files) == ["../second/train.py", "train.py"]
    assert [facts.is_never_loaded(str(folder / "rest.py")) for folder in folders] == [True, True, False]
    assert not any(facts.is_never_loaded(str(folder / "train.py")) for folder in folders[:2])
    for wrong in ("..", [1], ["/second"]):
        content = {**facts.content_without_checksum("."), "other_roots": wrong}
        with pytest.raises((ValueError, TypeError)):
            check_facts(content)


def test_of_many_values_the_least_and_the_most_are_known() -> None:
    values = Values()
    for number in range(MOST_DISTINCT + 5):
        values.add(number)
    assert (values.more, values.least, values.most) == (True, 0, MOST_DISTINCT + 4)
    assert Seen(1, 1, {"rows": values}).all("rows") is None


def test_true_and_one_are_two_values() -> None:
    values = Values()
    for value in (True, 1, 1.0, True):
        values.add(value)
    assert values.distinct == (True, 1, 1.0)


def test_facts_move_with_the_folder(tmp_path: pathlib.Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    written(here, facts_of(here, 3))
    here.rename(tmp_path / "there")
    facts = read_facts(str(tmp_path / "there" / "facts.json"))
    assert facts.facts_of_file(str(tmp_path / "there" / "train.py"), SCRIPT) is not None


def test_other_bytes_have_no_facts(tmp_path: pathlib.Path) -> None:
    facts = facts_of(tmp_path, 3)
    assert facts.facts_of_file(str(tmp_path / "train.py"), SCRIPT + b"\n") is None
    assert facts.facts_of_file(str(tmp_path / "other.py"), SCRIPT) is None


def edited(path: pathlib.Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda path: path.write_text(path.read_text()[:-40]), "no file of facts"),
        (lambda path: path.write_text("[]"), "no file of facts"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "no file of facts"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: edited(path, schema="other"), "no file of facts"),
        (lambda path: edited(path, version=2), "version 2, and this tool reads version 1"),
        (lambda path: edited(path, files={}), "damaged or was edited"),
        (lambda path: edited(path, runs=[]), "damaged or was edited"),
        (lambda path: path.write_text(path.read_text().replace('"most": 3', '"most": 2')), "damaged or was edited"),
        (lambda path: (path.parent / "train.py").write_text("import tensorflow\n"), "train.py has changed"),
        (lambda path: (path.parent / "train.py").unlink(), "train.py has changed"),
    ],
)
def test_damaged_and_stale_facts_are_refused(tmp_path: pathlib.Path, damage: object, said: str) -> None:
    path = written(tmp_path, facts_of(tmp_path, 3))
    damage(path)  # type: ignore[operator]
    with pytest.raises(UsageError, match=said):
        read_facts(str(path))


MASKS = b"""import tensorflow as tf


def rows(x, mask):
    return tf.boolean_mask(x, mask)


def others(x, mask):
    return tf.boolean_mask(x, mask)
"""


def test_findings_that_no_run_reached_are_apart_and_last(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_bytes(MASKS)
    blocks = {Block(1, 9): 2, Block(5, 5): 0, Block(9, 9): 2}
    facts = Facts(str(tmp_path), (RUN, RUN), {"train.py": FileFacts(digest(MASKS), blocks)})
    path = tmp_path / "facts.json"
    path.write_text(facts.to_text(str(path)))
    reports = tmp_path / "reports"
    assert main([str(tmp_path / "train.py"), "--facts", str(path), "-r", str(reports), "--no-cache"]) == 0
    lines = capsys.readouterr().err.splitlines()
    places = [line for line in lines if "NPU231" in line]
    assert [line.split(":")[1] for line in places] == ["9", "5"]
    assert "no observed run reached it" in places[1] and "no observed run" not in places[0]
    assert "1 place needs a manual change." in " ".join(lines)
    assert "No observed run reached 1 other place that may need a change." in lines
    said = json.loads((reports / "report.json").read_text())["files"][0]["diagnostics"]
    assert [(d["line"], d["kind"], d["runs"]) for d in said] == [(5, "unreached", 0), (9, "finding", 2)]
    page = (reports / "report.html").read_text()
    assert 'id="unreached-NPU231"' in page and 'id="manual-NPU231"' in page
    sections = (reports / "report.txt").read_text()
    assert sections.index("Manual changes: 1") < sections.index("Not reached by the observed runs: 1")


@pytest.mark.parametrize("folder, kind", [("project", "unreached"), ("other", "finding")])
def test_findings_in_files_of_the_project_that_no_run_loaded_are_not_reached(
    tmp_path: pathlib.Path, folder: str, kind: str
) -> None:
    facts = facts_of(tmp_path / "project", 3)
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "layers.py").write_bytes(MASKS)
    result = Converter(Settings(facts=facts, select=("NPU231",))).convert(MASKS, str(tmp_path / folder / "layers.py"))
    assert [d.kind for d in result.diagnostics] == [kind] * 2


@pytest.mark.parametrize(
    "runs, said", [(None, "made static"), (1, "made static (seen in one run)"), (3, "made static (seen in 3 runs)")]
)
def test_a_rewrite_says_on_how_many_runs_it_rests(runs: int | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check_call(context: Context, call: Call, name: str) -> Iterator[Change]:
        yield Change(call.node, "made static", (), runs=runs)

    monkeypatch.setattr(boolean_mask, "check_call", check_call)
    result = Converter(Settings(select=("NPU231",))).convert(MASKS)
    assert [(d.message, d.runs) for d in result.diagnostics] == [(said, runs)] * 2
