"""The record and other scripts of docs/ that run public code: the list is valid, pages have the kept results."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import os
import pathlib
import pickle
import random
import re
import struct
import subprocess
import sys
import types
import zlib
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from npu_shim.rehearsal import verifying

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
def make_record(repo_root: pathlib.Path) -> Any:
    """The script."""
    return load(repo_root, "make_record")


@pytest.fixture
def make_vendor(repo_root: pathlib.Path) -> Any:
    """The script that measures the vendor's tool."""
    return load(repo_root, "make_vendor")


@pytest.fixture
def record_list(make_record: Any) -> Any:
    """The module of the list, which the script uses."""
    return sys.modules["record_list"]


@pytest.fixture
def record_page(make_record: Any) -> Any:
    """The module of the page, which the script uses."""
    return make_record.record_page


@pytest.fixture
def record_results(make_record: Any) -> Any:
    """The module of the results, which the script uses."""
    return sys.modules["record_results"]


def entry(record_list: Any, **changes: Any) -> Any:
    """A program with a planted defect."""
    defect = record_list.Defect("rate 2 % higher", [record_list.Edit("train.py", r"rate = 0\.1", "rate = 0.102")])
    program = record_list.Program("owner/name", "abc1234", "session", "1.15", "examples", "train.py", defect=defect)
    return program._replace(**changes)


def table_of(page: pathlib.Path, maker: Any) -> str:
    """The table in a page."""
    return page.read_text(encoding="utf-8").split(maker._BEGIN)[1].split(maker._END)[0]


def test_the_pages_have_the_tables_of_all_kept_results(
    repo_root: pathlib.Path, record_list: Any, record_page: Any
) -> None:
    docs = repo_root / "docs"
    programs = record_list.read_programs()
    for chinese, name in enumerate(("record.md", "zh/record.md")):
        expected = record_page.page(programs, bool(chinese))
        assert table_of(docs / name, record_page) == expected, "Run python docs/make_record.py --table"
        readme = repo_root / ("README.zh-CN.md" if chinese else "README.md")
        assert table_of(readme, record_page) == record_page.sentence(programs, bool(chinese)), "Run it with --table"
    later, exports = load(repo_root, "make_later_names"), load(repo_root, "make_exports")
    assert table_of(docs / "public-code.md", later) == later.table()
    assert table_of(docs / "public-models.md", exports) == exports.table()


def test_each_result_belongs_to_a_program_and_has_what_its_program_asks_for(
    repo_root: pathlib.Path, record_list: Any, record_results: Any
) -> None:
    programs = record_list.read_programs()
    results = record_results.kept(programs).read()
    rows = (repo_root / "docs" / "record" / "results.tsv").read_text(encoding="utf-8").splitlines()
    assert [row.split("\t")[0] for row in rows[1:]] == list(results)
    for program in programs:
        result = results.get(program.name)
        if result and result.original_trains and result.verdict != record_results.FAILS:
            assert bool(result.defect) == bool(program.defect), program.name
        if result:
            assert result.verdict in record_results.VERDICTS and not program.reason, program.name
            assert result.verdict == record_results.AGREE or result.reason, program.name
            texts = result.reason, result.defect, result.ranks, result.export
            assert not any(re.search(r"(?:^|[\s'\"(])/\w+/", text) for text in texts), "a path of one machine"


def test_the_list_names_the_packages_for_each_version(record_list: Any) -> None:
    versions = {program.tensorflow for program in record_list.read_programs()}
    assert set(record_list.read_packages()) >= versions


def test_each_script_that_is_compared_across_versions_has_its_row(repo_root: pathlib.Path) -> None:
    versions = load(repo_root, "make_versions")
    rows = versions.known()
    assert list(rows) == list(versions.PAIRS) and all(rows.values())
    assert len({pair.script for pair in versions.PAIRS}) == 10
    for pair, row in rows.items():
        assert row.endswith(f" {pair.cause} |") if " differ " in row else " agree " in row, row
    assert table_of(repo_root / "docs" / "verify.md", versions) == versions.table(rows)


def test_each_difference_to_a_later_version_has_its_cause(repo_root: pathlib.Path) -> None:
    later = load(repo_root, "make_later_names")
    made = later.kept().read()
    assert all(
        made[script.name].verdict == "agree" or later.CAUSES[script.script]
        for script in later.SCRIPTS
        if script.name in made
    )


ROW = """
[[program]]
repository = "owner/name"
commit = "abc1234"
script = "train.py"
tensorflow = "1.15"
kind = "session"
origin = "drawn"
"""


def test_a_row_has_its_values(record_list: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "programs.toml"
    more = """folder = "examples"
arguments = "--batch_size=4"
further_runs = ["--evaluate"]
data = [["digits", "data", "20", "10"], ["waves", "sound", "2", "1"]]
links = [["data/a", "b"]]
edits = [["train.py", 'rate = (\\d)', '\\1']]
why = "Smaller sizes."
defect = { kind = "rate", edits = [["train.py", "a", "b"]] }
ranks = 2
"""
    path.write_text(ROW + more, encoding="utf-8")
    (program,) = record_list.read_programs(str(path))
    assert program.name == "owner/name/examples/train.py@1.15" and program.steps == 20 and program.ranks == 2
    assert program.edits == [record_list.Edit("train.py", r"rate = (\d)", r"\1")]
    assert program.defect.edits == [record_list.Edit("train.py", "a", "b")]
    assert program.data[1] == ["waves", "sound", "2", "1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ROW + 'comit = "a"',
            r"program 1 \(owner/name, train.py\): unknown key 'comit'. The keys are repository, commit",
        ),
        (ROW.replace('kind = "session"', ""), "program 1 .*: kind is missing"),
        (ROW.replace("owner/name", "name"), "repository must be like 'owner/name'"),
        (ROW.replace("1.15", "1.14"), "tensorflow must be like '1.15'"),
        (ROW.replace("drawn", "found"), "origin must be like 'drawn'"),
        (ROW + "steps = 0", "steps must be a number above 0"),
        (ROW + "arguments = 3", "arguments must be a string"),
        (ROW + 'edits = [["a", "b"]]', "edits needs entries of 3 strings"),
        (ROW + 'edits = [["a", "(", "c"]]', r"edits has the pattern '\(', which is no regular expression"),
        (ROW + 'edits = [["a", "b", "c"]]', "why is missing. Give the reason of the edits"),
        (ROW + 'data = [["digits"]]', "data needs entries of 2 strings or more"),
        (ROW + 'links = "a"', "links must be a list with entries"),
        (ROW + 'reason = "no data"', "reason must be one sentence that ends with a full stop"),
        (ROW + "defect = { kind = 'a' }", "defect must be a table with kind and edits"),
        (ROW + ROW, "program 2 .*: the same script is in the list already"),
        (ROW + "steps = ", "programs.toml: "),
    ],
)
def test_a_mistake_of_the_list_names_row_and_key(
    record_list: Any, tmp_path: pathlib.Path, text: str, message: str
) -> None:
    path = tmp_path / "programs.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(record_list.ListError, match=message):
        record_list.read_programs(str(path))


def test_programs_are_chosen_by_version_name_missing_result_and_sample(
    make_record: Any, record_list: Any, record_results: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    first, second = entry(record_list), entry(record_list, script="other.py")
    programs = [first, second, entry(record_list, tensorflow="2.15"), entry(record_list, script="b.py", reason="No.")]
    agrees = record_results.Result(first.name, "abc1234", verdict="agree")
    results(record_results, tmp_path, monkeypatch, programs, agrees)
    assert make_record.chosen(programs, "1.15.5", "", False, None) == [first, second]
    assert make_record.chosen(programs, "1.15.5", "train", False, None) == [first]
    assert make_record.chosen(programs, "1.15.5", "", True, None) == [first, second]  # without counts
    results(record_results, tmp_path, monkeypatch, programs, agrees._replace(calls=50))
    assert make_record.chosen(programs, "1.15.5", "", True, None) == [first, second]  # without its planted defect
    results(record_results, tmp_path, monkeypatch, programs, agrees._replace(calls=50, defect="differ at step 1: rate"))
    assert make_record.chosen(programs, "1.15.5", "", True, None) == [second]
    assert len(make_record.chosen(programs, "1.15.5", "", False, 1)) == 1
    assert make_record.chosen(programs, "1.15.5", "", False, 9) == [first, second]


def test_a_name_that_no_program_has_is_an_error(
    make_record: Any, record_list: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="1.15.5"))
    monkeypatch.setattr(make_record, "read_programs", lambda: [entry(record_list)])
    with pytest.raises(SystemExit, match="2"):
        make_record.main(["--only", "nosuch"])
    assert "no program matches 'nosuch' that runs here with TensorFlow 1.15.5" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["make_exports", "make_later_names", "make_versions"])
def test_other_scripts_name_an_entry_that_they_do_not_have(repo_root: pathlib.Path, capsys: Any, name: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        load(repo_root, name).main(["--only", "nosuch"])
    assert "no entry matches 'nosuch'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "result", "expected"),
    [
        ({"defect": None}, {"calls": 5}, False),
        ({"defect": None}, {}, True),
        ({"defect": None, "plain": ["an edit"]}, {}, False),
        ({}, {"calls": 5}, True),
        ({}, {"calls": 5, "defect": "agree"}, False),
        ({"defect": None, "ranks": 2}, {"calls": 5}, True),
        ({"defect": None, "ranks": 2}, {"calls": 5, "ranks": "agree"}, False),
        ({"defect": None, "export": "model.h5"}, {"calls": 5}, True),
        ({"defect": None, "export": "model.h5"}, {"calls": 5, "export": "equal: 0"}, False),
        ({}, {"verdict": "conversion does not run"}, False),
        ({}, {"verdict": "original trains nothing here"}, False),
    ],
)
def test_a_row_without_a_declared_figure_is_missing(
    record_list: Any, record_results: Any, program: Any, result: Any, expected: bool
) -> None:
    measured = record_results.Result("a", "b", verdict="agree")._replace(**result)
    assert record_results.is_missing(entry(record_list, **program), measured) is expected
    assert record_results.is_missing(entry(record_list, **program), None)


def results(record_results: Any, tmp_path: pathlib.Path, monkeypatch: Any, programs: Any, *rows: Any) -> None:
    """Keep results of some programs in a folder of the test."""
    monkeypatch.setattr(record_results.verified, "HERE", str(tmp_path))
    (tmp_path / "record").mkdir(exist_ok=True)
    for row in rows:
        record_results.kept(programs).add(row)


def test_a_kept_result_leaves_the_others_and_makes_a_row_and_the_counts(
    record_list: Any, record_page: Any, record_results: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    first, second = entry(record_list), entry(record_list, script="other.py", defect=None, cause="It races.")
    third = entry(record_list, script="third.py", defect=None, reason="It needs a display.")
    programs = [first, second, third]
    chance = record_results.Result(
        second.name, "abc1234", verdict="not reproducible", reason="Loss.", steps=20, names=31
    )
    agrees = record_results.Result(
        first.name, "1234567", 50, 4, 1, 2, 3, 7, 20, 30, "agree", defect="differ at step 1: rate"
    )
    results(record_results, tmp_path, monkeypatch, programs, chance, agrees._replace(seconds=8, date="2026-01-02"))
    path = tmp_path / "record" / "results.tsv"
    head, *lines = path.read_text(encoding="utf-8").splitlines(True)
    path.write_text("".join([head, *lines[::-1], lines[0].replace("1234567", "abc1234"), lines[0]]), encoding="utf-8")
    record_results.kept(programs).add()  # puts what a merge of branches made in order
    assert path.read_text(encoding="utf-8") == "".join([head, *lines])
    read = record_results.kept(programs).read()
    assert read[first.name].ran == "1234567" and read[first.name].calls == 50
    rows = [row.split(" | ")[1:] for row in record_page.table(programs, False).splitlines()[2:]]
    assert rows[0] == (
        ["session", "1.15", "50", "4, 1", "7, 2, 3", "agree", "20, 30", "script and conversion", "", ""]
        + ["rate 2 % higher: differ at step 1: rate", "8", "2026-01-02", "", " |"]
    )
    assert "blob/1234567/examples/train.py" in record_page.table(programs, False).splitlines()[2]
    assert rows[1][5] == "not reproducible: Loss. It races." and rows[2][5] == "not run here: It needs a display."


def test_the_headline_counts_programs_once_and_by_what_they_declare(
    record_list: Any, record_page: Any, record_results: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    first = entry(record_list, ranks=2, export="model.h5")
    twice = first._replace(tensorflow="2.15")
    old, fails = entry(record_list, script="old.py", defect=None), entry(record_list, script="fails.py")
    read = entry(record_list, script="read.py", reason="It needs a display.", defect=None)
    later = entry(record_list, script="later.py", origin=record_list.CHOSEN)
    programs = [first, twice, old, fails, read, later]
    agrees = record_results.Result(first.name, "abc1234", 50, 4, 1, 2, 3, 7, 20, 30, "agree", defect="differ at 1")
    rows = [
        agrees._replace(ranks="agree"),
        agrees._replace(name=twice.name, verdict="differ", reason="Loss.", export="not exported: no", calls=60),
        record_results.Result(old.name, "abc1234", verdict="agree"),
        record_results.Result(fails.name, "abc1234", verdict="original trains nothing here"),
    ]
    results(record_results, tmp_path, monkeypatch, programs, *rows)
    head, _, *lines = record_page.headline(programs, False).splitlines()
    assert head == "|  | drawn | chosen before | total | goal |"
    counts = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:4] for line in lines}
    assert counts["programs, repositories"] == ["4, 1", "1, 1", "5, 1"]
    total = {name: cells[2] for name, cells in counts.items()}
    assert total["run here with `npu-shim migrate`"] == "1 / 5 (20.0 %)"
    assert total["run here with `npu-shim verify` alone"] == "1 / 5 (20.0 %)"
    assert total["original fails here, or trains nothing"] == "1 / 5 (20.0 %)"
    assert total["not run here, with the reason"] == total["not measured yet"] == "1 / 5 (20.0 %)"
    assert total["agree, or irreproducible with the cause"] == "1 / 2 (50.0 %)"
    assert total["compute something else"] == "1"  # the worse of both versions
    assert total["calls of TensorFlow"] == "60 in 1 programs"
    assert total["planted defects found"] == "1 / 1 (100.0 %)"
    assert (total["agree on several ranks"], total["exported and equal"]) == ("0 / 1 (0.0 %)", "0 / 1 (0.0 %)")
    assert counts["not measured yet"][1] == "1 / 1 (100.0 %)"
    assert "| TensorFlow 调用 | 60（1 个程序） |" in record_page.headline(programs, True)
    assert "has 1 public programs that were migrated with one run each: 0 compute the same." in record_page.sentence(
        programs, False
    )


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, []),
        ({"verdict": "agree", "reached": 0}, []),
        (
            {"verdict": "differ", "reason": "At step 1."},
            ["The verdict was 'not reproducible' and is 'differ': At step 1."],
        ),
        ({"verdict": "original does not run"}, ["The verdict was 'not reproducible' and is 'original does not run': "]),
        ({"reached": 3}, ["2 places in reached code were left, now 3."]),
        ({"defect": "agree"}, ["Defect: it was 'differ at step 1' and is 'agree'."]),
        ({"ranks": "differ at step 2"}, ["Ranks: it was 'agree' and is 'differ at step 2'."]),
        ({"export": "not exported: no"}, ["Export: it was 'equal: 1e-7' and is 'not exported: no'."]),
        ({"defect": "", "ranks": "", "export": ""}, []),
    ],
)
def test_a_row_that_got_worse_says_in_what(record_results: Any, changes: Any, sentences: list[str]) -> None:
    before = record_results.Result("a", "b", reached=2, verdict="not reproducible")
    before = before._replace(defect="differ at step 1", ranks="agree", export="equal: 1e-7")
    assert record_results.worse(before, before._replace(**changes)) == sentences
    assert record_results.worse(None, before) == []


def test_a_row_that_got_worse_has_its_former_figures_until_it_gets_better(record_results: Any) -> None:
    before = record_results.Result("a", "b", reached=1, verdict="agree", date="2026-11-28", version="0b7387c2")
    now = before._replace(verdict="differ", reason="Loss.", reached=3, date="2026-11-29", version="92ce5016")
    shown = record_results.with_former_figures(before, now)
    assert shown.was == "was agree; 1 left in reached code on 2026-11-28 0b7387c2"
    assert record_results.with_former_figures(shown, now._replace(date="2026-11-30")).was == shown.was
    assert record_results.with_former_figures(shown, before).was == ""
    assert record_results.with_former_figures(None, now) == now


def test_a_worse_row_is_printed_and_kept_with_its_former_verdict(
    make_record: Any, record_list: Any, record_page: Any, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    programs, kept = [entry(record_list)], make_record.kept
    before = make_record.Result(programs[0].name, "abc1234", verdict="agree", date="2026-01-02", version="0b7387c2")
    now = before._replace(verdict="differ", reason="At step 1: loss.", date="2026-01-03", version="92ce5016")
    results(sys.modules["record_results"], tmp_path, monkeypatch, programs, before)
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="1.15.5"))
    monkeypatch.setattr(make_record, "read_programs", lambda: programs)
    monkeypatch.setattr(make_record.Measuring, "measure", lambda self, known: now)
    monkeypatch.setattr(record_page, "write", lambda programs: None)
    monkeypatch.setattr(make_record.verified, "use_stand_ins", lambda: None)
    assert make_record.main(["--keep", str(tmp_path / "kept"), "--check"]) == 1
    assert "The verdict was 'agree' and is 'differ': At step 1: loss." in capsys.readouterr().err
    assert kept(programs).read()[programs[0].name] == before
    assert make_record.main(["--keep", str(tmp_path / "kept")]) == 1
    assert kept(programs).read()[programs[0].name] == now._replace(was="was agree on 2026-01-02 0b7387c2")
    assert "| differ: At step 1: loss. (was agree on 2026-01-02 0b7387c2) |" in record_page.table(programs, False)


def test_a_missing_checkout_is_named_with_the_command_that_brings_it(
    make_record: Any, record_list: Any, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    def fail(*_: Any) -> None:
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="1.15.5"))
    monkeypatch.setattr(make_record, "read_programs", lambda: [entry(record_list)])
    monkeypatch.setattr(make_record.verified, "project", fail)
    monkeypatch.setattr(make_record.record_page, "write", lambda programs: None)
    monkeypatch.setattr(make_record.verified, "use_stand_ins", lambda: None)
    assert make_record.main(["--sources", str(tmp_path)]) == 0
    expected = f"no checkout. Run: git clone --bare https://github.com/owner/name {tmp_path}{os.sep}owner/name"
    assert expected in capsys.readouterr().err


def test_a_failure_is_that_of_the_original_a_package_or_the_conversion(
    make_record: Any, record_list: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    program = entry(record_list, defect=None)
    head = make_record.Result(program.name, "abc1234", verdict=make_record.NOT_RUN, reason="train.py ended.")
    monkeypatch.setattr(make_record.verified, "project", lambda program, sources, target: "abc1234")

    def alone(error: Exception | None, head: Any = head) -> Any:
        def run(*_: Any, **__: Any) -> str:
            if error:
                raise error
            return ""

        monkeypatch.setattr(make_record.verified, "run", run)
        return make_record.Measuring(program, "", str(tmp_path))._alone(head)

    assert alone(None) == head._replace(verdict="conversion does not run")
    assert alone(subprocess.TimeoutExpired("python", 600)).verdict == "conversion does not run"
    failed = alone(RuntimeError("run ended with code 1:\nTraceback\nValueError: no data\n"))
    assert (failed.verdict, failed.reason) == ("original does not run", "ValueError: no data")
    with pytest.raises(make_record.MissingModule, match="No module named 'gym'. record/programs.toml names packages"):
        alone(RuntimeError("run ended with code 1:\nModuleNotFoundError: No module named 'gym'"))
    for reason in (verifying.NOTHING_RECORDED, verifying.NOTHING_COMPARED):
        assert alone(None, head._replace(reason=reason)).verdict == "original trains nothing here"


def test_the_reason_is_the_line_of_the_error(make_record: Any) -> None:
    graph = "\n\t [[node embedding]]\n\nFunction call stack:\ntrain_function\n"
    error = "tensorflow.python.framework.errors_impl.InvalidArgumentError:  indices[7] = 9 is not in [0, 9)"
    assert make_record.failure(f"KeyError: 'a'\nTraceback\n  File\n{error}{graph}") == error
    assert make_record.failure("Traceback\n    assert x\nAssertionError\n") == "AssertionError"
    assert make_record.failure("An Error: no\nverify did not run.\n\n") == "verify did not run."


@pytest.mark.parametrize("failing", ["observe", "verify", "main.py"])
def test_a_command_that_fails_inside_a_row_is_a_failure_of_the_conversion(
    make_record: Any, record_list: Any, tmp_path: pathlib.Path, monkeypatch: Any, failing: str
) -> None:
    def run(arguments: Any, *_: Any, **__: Any) -> str:
        if any(word.endswith(failing) for word in arguments):
            raise RuntimeError(f"{failing} ended with code 1:\nTraceback\nKeyError: 'loss'\n")
        return ""

    def project(program: Any, sources: str, target: str) -> str:
        os.makedirs(target)
        return "abc1234"

    result = make_record.Result("", "abc1234", verdict="agree", calls=5)
    monkeypatch.setattr(make_record.verified, "run", run)
    monkeypatch.setattr(make_record.verified, "project", project)
    monkeypatch.setattr(make_record.verified, "edit", lambda folder, edits: None)
    if failing == "main.py":  # the tool, for the planted defect
        monkeypatch.setattr(make_record.Measuring, "_migrated", lambda self, head: result)
    program = entry(record_list, further_runs=["--evaluate"])
    if failing == "verify":
        program = program._replace(plain=[record_list.Edit("train.py", "a", "b")])
    measured = make_record.Measuring(program, "", str(tmp_path)).measure(None)
    assert (measured.verdict, measured.reason) == ("conversion does not run", "KeyError: 'loss'")


def test_a_port_is_compared_with_its_form_without_npu_code(
    make_record: Any, record_list: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    def project(program: Any, sources: str, target: str) -> str:
        os.makedirs(os.path.join(target, "models"))
        for name in ("train.py", "models/net.py"):
            with open(os.path.join(target, name), "w", encoding="utf-8") as stream:
                stream.write("from npu_bridge.npu_init import *\nmode = 'npu'\n")
        return "abc1234"

    seen = []

    def verify(name: str, arguments: list[str], folder: str, report: str) -> Any:
        where = arguments.index("train.py")
        assert arguments[where + 2 :] == ["--", "--epochs=1"]
        for root in (folder, os.path.dirname(arguments[where + 1])):
            texts = [open(os.path.join(root, each), encoding="utf-8").read() for each in ("train.py", "models/net.py")]
            seen.append("".join(texts))
        return {"verdict": "agree", "original": {"steps": 3}, "streams": [], "problems": []}

    monkeypatch.setattr(make_record.verified, "project", project)
    monkeypatch.setattr(make_record.verified, "verify", verify)
    port = entry(record_list, defect=None, plain=[record_list.Edit("**/*.py", "npu'", "cpu'")], arguments="--epochs=1")
    result = make_record.Measuring(port, "", str(tmp_path)).measure(None)
    assert (result.verdict, result.steps, result.ran) == ("agree", 3, "abc1234")
    assert seen[0].count("mode = 'cpu'") == 2 and "npu_bridge" not in seen[0] and "import tensorflow as tf;" in seen[0]
    assert seen[1] == "from npu_bridge.npu_init import *\nmode = 'npu'\n" * 2


def test_a_verdict_has_the_first_value_that_departs(repo_root: pathlib.Path) -> None:
    verdict = load(repo_root, "verified").verdict
    problems = ["The first difference is at step 1: loss 'loss', 1 and 2.", "Before it, values differ."]
    assert verdict({"verdict": "differ", "problems": problems}) == "differ at step 1: loss 'loss', 1 and 2."
    itself = {"verdict": "not reproducible", "problems": ["The original departs from itself at step 1: loss."]}
    assert verdict(itself) == "not reproducible: The original departs from itself at step 1: loss."
    assert verdict({"verdict": "not run", "problems": ["a.py ended with exit code 1."]}) == "not run"


def test_a_project_has_the_files_of_its_commit(make_record: Any, record_list: Any, tmp_path: pathlib.Path) -> None:
    clone = tmp_path / "owner" / "name"
    clone.mkdir(parents=True)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    (clone / "examples").mkdir()
    (clone / "examples" / "train.py").write_text("rate = 0.1\n", encoding="utf-8")
    (clone / "examples" / "large [1].bin").write_text("a clone without large files", encoding="utf-8")
    for arguments in (["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"]).decode().strip()
    (clone / "examples" / "train.py").write_text("later", encoding="utf-8")
    program, verified = entry(record_list, commit=commit), make_record.verified
    sources = tmp_path / "sources" / "owner"
    sources.mkdir(parents=True)
    (sources / "name").symlink_to(clone / ".git")
    assert verified.project(program, str(tmp_path / "sources"), str(tmp_path / "made")) == commit
    verified.edit(str(tmp_path / "made"), program.defect.edits)
    assert (tmp_path / "made" / "train.py").read_text(encoding="utf-8") == "rate = 0.102\n"
    with pytest.raises(ValueError, match=r"train\.py: the edit 'batch' changes nothing"):
        verified.edit(str(tmp_path / "made"), [record_list.Edit("train.py", "batch", "")])
    other = entry(record_list, commit="0" * 40)  # a clone without history
    assert commit.startswith(verified.project(other, str(tmp_path / "sources"), str(tmp_path / "head")))
    assert sorted(os.listdir(str(tmp_path / "head"))) == ["large [1].bin", "train.py"]
    blob = subprocess.check_output([*git, "rev-parse", "HEAD:examples/large [1].bin"]).decode().strip()
    (clone / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    verified.project(program, str(tmp_path / "sources"), str(tmp_path / "partial"))
    assert os.listdir(str(tmp_path / "partial")) == ["train.py"]


def test_the_digits_have_the_format_of_mnist(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    data = load(repo_root, "public_data")
    data.main(["digits", str(tmp_path / "a" / "b"), "20", "10", "gz"])
    with gzip.open(str(tmp_path / "a" / "b" / "t10k-images-idx3-ubyte.gz")) as stream:
        images = stream.read()
    with gzip.open(str(tmp_path / "a" / "b" / "train-labels-idx1-ubyte.gz")) as stream:
        labels = stream.read()
    assert struct.unpack(">IIII", images[:16]) == (2051, 10, 28, 28) and len(images) == 16 + 10 * 28 * 28
    assert struct.unpack(">II", labels[:8]) == (2049, 20) and set(labels[8:]) <= set(range(10))


def test_pictures_are_png_of_one_and_three_channels(repo_root: pathlib.Path) -> None:
    data = load(repo_root, "public_data")
    for channels, colours in ((1, 0), (3, 2)):
        pixels = np.arange(4 * 5 * channels).reshape(4, 5, channels)
        made = data._png(pixels)
        assert struct.unpack(">IIBB", made[16:26]) == (5, 4, 8, colours)
        length = struct.unpack(">I", made[33:37])[0]
        lines = np.frombuffer(zlib.decompress(made[41 : 41 + length]), np.uint8).reshape(4, -1)
        assert not lines[:, 0].any() and (lines[:, 1:] == pixels.reshape(4, -1)).all()


def test_arrays_have_their_shapes_and_classes(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    load(repo_root, "public_data").main(["arrays", str(tmp_path), "a/x:8,3", "y:8,2:classes"])
    assert np.load(str(tmp_path / "a" / "x.npy")).shape == (8, 3)
    labels = np.load(str(tmp_path / "y.npy"))
    assert labels.shape == (8, 2) and (labels.sum(1) == 1).all()


def test_packed_arrays_have_their_keys_and_limits(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    load(repo_root, "public_data").main(["packed", str(tmp_path), "a", "x:8,3", "y:8:5"])
    with np.load(str(tmp_path / "a.npz")) as arrays:
        assert arrays["x"].shape == (8, 3) and set(arrays["y"]) <= set(range(5))


def test_lines_have_the_fields_of_their_form(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    form = 'p{number:3:7},{int:4}\\t{float},{of:a|b},"{words:2:3}"'
    load(repo_root, "public_data").main(["lines", str(tmp_path / "a"), "b/x.csv", "12", form, "head"])
    head, *lines = (tmp_path / "a" / "b" / "x.csv").read_text(encoding="utf-8").splitlines()
    assert head == "head" and len(lines) == 12
    for number, line in enumerate(lines):
        assert re.fullmatch(rf'p{number + 7:03},[0-3]\t0\.\d{{4}},[ab],"[a-z]+( [a-z]+){{1,2}}"', line)


def test_a_graph_has_the_pickles_of_planetoid(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    load(repo_root, "public_data").main(["graph", str(tmp_path), "cora", "300", "12", "7"])
    parts = {key: pickle.loads((tmp_path / f"ind.cora.{key}").read_bytes()) for key in ("x", "allx", "ty", "graph")}
    assert parts["x"].shape == (140, 12) and parts["allx"].shape == (200, 12) and parts["ty"].shape == (100, 7)
    assert all(0 <= node < 300 and len(others) == 3 for node, others in parts["graph"].items())
    assert (tmp_path / "ind.cora.test.index").read_text(encoding="utf-8").split()[0] == "200"


def test_pictures_have_objects_in_the_folders_of_pascal_voc(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    data = load(repo_root, "public_data")
    data._write = lambda path, image: pathlib.Path(path).write_bytes(bytes(image.shape))  # without TensorFlow
    data.main(["boxes", str(tmp_path), "3", "30", "cat", "dog"])
    tree = ElementTree.parse(str(tmp_path / "Annotations" / "0002.xml"))
    assert (tmp_path / "JPEGImages" / (tree.findtext("filename") or "")).read_bytes() == bytes((30, 30, 3))
    assert {node.text for node in tree.iter("name")} <= {"cat", "dog"}
    for box in tree.iter("bndbox"):
        left, top, right, bottom = (int(box.findtext(key) or "") for key in ("xmin", "ymin", "xmax", "ymax"))
        assert 1 <= left < right <= 30 and 1 <= top < bottom <= 30
    assert (tmp_path / "ImageSets" / "Main" / "trainval.txt").read_text(encoding="utf-8").split() == [
        "0000",
        "0001",
        "0002",
    ]
    assert (tmp_path / "SegmentationClass" / "0001.png").read_bytes().startswith(b"\x89PNG")


def test_the_draw_follows_its_list_and_each_drawn_program_has_its_row(
    repo_root: pathlib.Path, record_list: Any
) -> None:
    folder = repo_root / "docs" / "record"
    rows = {(p.repository, p.path) for p in record_list.read_programs() if p.origin == record_list.DRAWN}
    drawn = set()
    for name, frame, zoo in (("draw", "frame", False), ("draw_zoo", "frame_zoo", True)):
        order = (folder / f"{frame}.txt").read_text(encoding="utf-8").splitlines()
        assert order == sorted(order) and len(order) == len(set(order))
        random.Random(record_list.SEED).shuffle(order)
        _, *lines = (folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        for number, (line, entry) in enumerate(zip(lines, order), 1):
            place, what, *found = line.split("\t")
            assert (int(place), what) == (number, entry) and all(found)
            if zoo and found != ["in the list before"]:
                drawn.add(("Ascend/ModelZoo-TensorFlow", f"{what}/{found[0]}"))
            elif not zoo and found[0] == "program":
                drawn.add((what, found[1]))
    assert drawn == rows


def test_the_picture_of_the_readme_has_the_counts_of_its_row(
    repo_root: pathlib.Path, record_list: Any, record_results: Any
) -> None:
    picture = ElementTree.parse(str(repo_root / "docs" / "images" / "migrate.svg"))
    words = " ".join("".join(node.itertext()) for node in picture.iter() if node.tag.endswith("}text"))
    text = " ".join(words.replace("\xa0", " ").split())
    (name,) = {program.name for program in record_list.read_programs()} & set(text.split())
    row = record_results.kept(record_list.read_programs()).read()[name]
    facts = re.search(r"(\d+) rewrites?, (\d+|none) by what \d+ observed runs? showed\.", text)
    left = re.search(r"To change by hand: (\d+) places? in code that ran, (\d+) not reached\.", text)
    assert facts and left, f"the picture has other sentences than migrate prints now. Run docs/make_picture.py: {text}"
    counts = [int(number.replace("none", "0")) for number in (*facts.groups(), *left.groups())]
    assert counts == [row.rewrites, row.by_facts, row.reached, row.unreached], (
        f"Run docs/make_picture.py, and measure {name} anew"
    )
    assert f"The two scripts {row.verdict}." in text


def test_lines_of_atc_agree_in_any_order_of_inputs(repo_root: pathlib.Path) -> None:
    maker = load(repo_root, "make_exports")
    page = '```\natc --model=a.pb --framework=3 \\\n  --input_shape="b:1,2; a:3" --out_nodes="prob:0"\n```\n'
    theirs = maker.arguments(page)
    assert theirs["input_shape"] == "b:1,2; a:3"
    ours = maker.arguments("atc --model=m.pb '--input_shape=a:3;b:1,2' --out_nodes=prob:0")
    assert maker.agreement(theirs, ours) == "same inputs and shapes; same outputs"
    assert maker.agreement(theirs, {**ours, "out_nodes": "c:0"}) == (
        "same inputs and shapes; outputs differ: `prob:0`, here `c:0`"
    )
    assert maker.agreement({"model": "a.pb"}, ours) == ""


# --- the vendor's tool -------------------------------------------------------------------------------------------
@pytest.fixture
def changes_of(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> Any:
    """A function that counts the changes from one text of a file to another."""
    module = load(repo_root, "record_changes")

    def count(before: str, after: str, script: str = "train.py", is_distributed: bool = False) -> Any:
        for folder, text in (("before", before), ("after", after)):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "model.py").write_bytes(text.encode())
        folders = [str(tmp_path / folder) for folder in ("before", "after")]
        changes = module.count(*folders, ["model.py"], script, is_distributed)
        assert set(changes.kinds) <= set(module.KINDS)
        return changes.lines, changes.kinds

    return count


@pytest.mark.parametrize(
    ("before", "after", "lines", "kinds"),
    [
        ("x = 1\n", "x = 1\n\n", 1, {"lines without a change of code": 1}),
        ("x = 'a'\ny = 1\n", 'x = "a"\ny = 2\n', 2, {"lines without a change of code": 1}),
        ("x = f(1,\n  2)\n", "x = f(1, 2, c=3)\n", 2, {}),
        ("if a:\n  x = 1\n", "if a:\n  pass\nx = 1\n", 2, {}),
        ("x = 1  # one\n", "x = 1\n", 1, {"lines without a change of code": 1, "comments and docstrings lost": 1}),
        ("def f():\n  'Say.'\n  return 1\n", "def f():\n  return 1\n", 1, {"comments and docstrings lost": 1}),
        ("x = 1\r\n", "x = 1\n", 1, {"files with other line ends": 1}),
        ("x = 1\n", "from npu_bridge.npu_init import *\nx = 1\n", 1, {"unused imports": 1}),
        ("x = 1\n", "import npu_device as npu\nx = 1\n", 1, {"unused imports": 1}),
        ("x = 1\n", "from npu_bridge.npu_init import *\nx = npu_ops\n", 2, {}),
        ("hvd.init()\n", "import npu_shim.horovod.tensorflow as hvd\nhvd.init()\n", 1, {}),
        ("x = 1\n", "from npu_bridge.estimator.npu import npu_convert_dropout\nx = 1\n", 1, {}),
    ],
)
def test_needless_changes_are_counted(changes_of: Any, before: str, after: str, lines: int, kinds: Any) -> None:
    assert changes_of(before, after) == (lines if "\r" not in before else 0, kinds)


def test_an_import_of_the_entry_script_is_not_needless(changes_of: Any) -> None:
    assert changes_of("x = 1\n", "import npu_device\nx = 1\n", script="model.py") == (1, {})


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("test = d.batch(4)", "test = d.batch(4, drop_remainder=True)", "batches of evaluation cut"),
        ("def eval_fn():\n  return d.batch(4)", "def eval_fn():\n  return d.batch(4, drop_remainder=True)", "cut"),
        ("evalSet = d.batch(4, drop_remainder=False)", "evalSet = d.batch(4, drop_remainder=True)", "cut"),
        ("x = d.batch(4, drop_remainder=t)", "x = d.batch(4, drop_remainder=True)", "computed drop_remainder replaced"),
        ("def f():\n  train = d.batch(4)", "def f():\n  train = d.batch(4, drop_remainder=True)", ""),
        ("def train_and_eval():\n  d.batch(4)", "def train_and_eval():\n  d.batch(4, drop_remainder=True)", ""),
        ("def test():\n  train = d.batch(4)", "def test():\n  train = d.batch(4, drop_remainder=True)", ""),
        ("latest = d.batch(4)", "latest = d.batch(4, drop_remainder=True)", ""),
        ("test = d.batch(4, True)", "test = d.batch(4, True, drop_remainder=True)", "arguments given twice"),
        ("Estimator(f, d, c)", "Estimator(f, d, c, config=npu_run_config_init())", "arguments given twice"),
        ("Estimator(f, d)", "Estimator(f, d, config=npu_run_config_init())", ""),
        ("Estimator(*a, f, d)", "Estimator(*a, f, d, config=npu_run_config_init())", ""),
        ("d.shard(n, i)", "d.shard(1, 0)", "shard of the user replaced"),
        ("test = d.batch(1)", "test = d.batch(1, drop_remainder=True)", ""),
        ("test = d.map_and_batch(f, 1)", "test = d.map_and_batch(f, 1, drop_remainder=True)", ""),
        ("tf.device(None)", "tf.device('/cpu:0')", "device functions or None replaced"),
        ("tf.device(t.replica_device_setter())", "tf.device('/cpu:0')", "device functions or None replaced"),
        ("tf.device('/gpu:0')", "tf.device('/cpu:0')", ""),
        ("tf.device(device)", "tf.device('/cpu:0')", ""),
        ("import horovod as hvd\nhvd.rank()", "None\nhvd.rank()", "names without their import"),
        ("import horovod as hvd\nhvd.rank()", "None\nrank()", ""),
    ],
)
def test_wrong_changes_are_counted_by_kind(changes_of: Any, before: str, after: str, kind: str) -> None:
    _, kinds = changes_of(before + "\n", after + "\n")
    wrong = [name for name in kinds if name not in ("lines without a change of code", "unused imports")]
    assert len(wrong) == bool(kind) and all(kind in name and kinds[name] == 1 for name in wrong)


def test_a_shard_that_distributed_training_asks_for_is_right(changes_of: Any) -> None:
    assert changes_of("d.shard(n, i)\n", "d.shard(1, 0)\n", is_distributed=True) == (1, {})


def test_a_lost_run_bit_is_needless(changes_of: Any, tmp_path: pathlib.Path) -> None:
    changes_of("x = 1\n", "x = 2\n")
    (tmp_path / "before" / "model.py").chmod(0o755)
    assert changes_of("x = 1\n", "x = 2\n") == (1, {"run bits lost": 1})


@pytest.mark.parametrize(
    ("text", "version", "options"),
    [
        ("import tensorflow as tf", "1.15", []),
        ("import horovod.tensorflow as hvd\nhvd.init()", "1.15", ["-d", "horovod"]),
        ("    import horovod.tensorflow as hvd\n    hvd.size()", "1.15", []),
        ("s = tf.distribute.MirroredStrategy()", "2.6", ["-d", "tf_strategy"]),
        ("import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()", "1.15", []),
        ("import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()", "2.6", ["-c"]),
    ],
)
def test_the_tool_has_the_options_for_a_program(
    repo_root: pathlib.Path, text: str, version: str, options: list[str]
) -> None:
    assert load(repo_root, "record_vendor").options_for(text, version) == options


_VENDOR_TOOL = """
import os, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert os.path.dirname(options["-m"]) == options["-i"]
while input("Enter 'continue' or 'c': ") != "c" or input("'y' or 'n': ") != "n":
    pass
target = os.path.join(options["-o"], "source_npu_1")
os.makedirs(target)
for name in os.listdir(options["-i"]):
    with open(os.path.join(options["-i"], name)) as source, open(os.path.join(target, name), "w") as result:
        text = source.read()
        if "raise" in text:
            sys.exit("\\nValueError: raise")
        result.write("from npu_bridge.npu_init import *\\n" + text.replace("BROKEN", "("))
"""


@pytest.mark.parametrize(
    ("text", "verdict", "reason", "lines"),
    [
        ("x = 1\n", "differ", "TypeError: two values", 1),
        ("x = BROKEN\n", "result does not parse", "train.py", 0),
        ("raise_\n", "conversion fails", "ValueError: raise", None),
        ("import npu_bridge\n", "port already", "", None),
        ("from keras.layers import Dense\n", "native Keras", "", None),
    ],
)
def test_a_conversion_of_the_vendors_tool_is_compared_with_the_original(
    make_vendor: Any,
    record_list: Any,
    record_results: Any,
    tmp_path: pathlib.Path,
    monkeypatch: Any,
    text: str,
    verdict: str,
    reason: str,
    lines: int | None,
) -> None:
    def project(program: Any, sources: str, target: str) -> str:
        os.makedirs(target)
        pathlib.Path(target, "train.py").write_text(text, encoding="utf-8")
        return "abc1234"

    def verify(name: str, arguments: list[str], folder: str, report: str) -> Any:
        converted = arguments[arguments.index("train.py") + 1]
        assert "npu_bridge" in pathlib.Path(converted).read_text(encoding="utf-8")
        problem = (
            f"{converted} ended with exit code 1 after 0 recorded steps. Its error: {reason}. See its output in a."
        )
        run = {"steps": 3, "completed": True}
        return {"verdict": "differ", "original": run, "streams": [], "problems": [problem]}

    monkeypatch.setattr(make_vendor.verified, "project", project)
    monkeypatch.setattr(make_vendor.verified, "verify", verify)
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "main.py").write_text(_VENDOR_TOOL, encoding="utf-8")
    known = record_results.Result("", "", verdict="agree", steps=3)
    measuring = make_vendor.VendorMeasuring(entry(record_list, defect=None), "", str(tmp_path))
    result = measuring.compare(str(tmp_path / "tool"), known, None)
    assert (result.verdict, result.reason, result.lines) == (verdict, reason, lines)


def test_each_result_of_the_vendors_tool_belongs_to_a_program(
    make_vendor: Any, record_list: Any, record_results: Any, repo_root: pathlib.Path
) -> None:
    vendor = make_vendor.record_vendor
    rows = vendor.kept(record_list.read_programs()).read()
    lines = (repo_root / "docs" / "record" / "vendor.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines[1:]] == list(rows)
    own = {"", vendor.FAILS, vendor.NO_SYNTAX, *vendor.OUTSIDE}
    for row in rows.values():
        assert row.verdict in own or row.verdict in record_results.VERDICTS, row.name
        assert not re.search(r"(?:^|[\s'\"(])/\w+/", row.reason), "a path of one machine"
        assert not set(vendor.kinds_of(row.kinds + "; " + row.our_kinds)) - set(make_vendor.record_changes.KINDS)
    assert all(rows[name].verdict == record_results.DIFFER for name in (*vendor.CAUSES, *vendor.CHANCE))


def test_both_tools_are_counted_in_the_same_programs(
    make_vendor: Any, record_list: Any, record_results: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    vendor = make_vendor.record_vendor
    programs = [entry(record_list, script=f"{number}.py") for number in range(5)]
    rows = [(p.name, "82957b9", "", verdict) for p, verdict in zip(programs, ("agree", "not run", "", "port already"))]
    results(
        record_results, tmp_path, monkeypatch, programs, record_results.Result(programs[0].name, "", verdict="agree")
    )
    record_results.kept(programs).add(record_results.Result(programs[1].name, "", verdict="not reproducible"))
    kinds = "arguments given twice 2; unused imports 3"
    vendor.kept(programs).add(
        *(vendor.VendorResult(*row, "", 1, 10, kinds, 4, "comments and docstrings lost 1") for row in rows[:3])
    )
    vendor.kept(programs).add(
        vendor.VendorResult(*rows[3]), vendor.VendorResult(programs[4].name, "", "", vendor.FAILS)
    )
    lines = [[cell.strip("| ") for cell in line.split(" | ")] for line in vendor.totals(programs, False).splitlines()]
    assert [cells[1:] for cells in lines[2:5]] == [["3 / 4", "4 / 4"], ["1 / 2", "2 / 2"], ["1 / 2", "1 / 2"]]
    assert [cells[1:] for cells in lines[5:8]] == [["0 / 2", "1 / 2"], ["0 / 2", "0 / 2"], ["0 / 2", "0 / 2"]]
    assert lines[8:] == [
        ["changed lines", "30", "12"],
        ["wrong changes", "6", "0"],
        ["&emsp;arguments given twice", "6", "0"],
        ["needless changes", "9", "3"],
        ["&emsp;comments and docstrings lost", "0", "3"],
        ["&emsp;unused imports", "9", "0"],
    ]
    first = vendor.kept(programs).read()[programs[0].name]
    assert first.changes == "2, 3; 0, 1" and first.outcome == "agree"
    differs = first._replace(verdict="differ", reason="Loss.")
    assert differs.outcome == "differ: Loss. The cause is not traced."
    monkeypatch.setitem(vendor.CAUSES, first.name, "A batch is lost.")
    assert differs.outcome == "differ: Loss. A batch is lost."
    vendor.kept(programs).add(differs)
    assert "| differ, with the cause | 1 / 2 | 0 / 2 |" in vendor.totals(programs, False)
    monkeypatch.setitem(vendor.CHANCE, first.name, "It depends on time.")
    assert "| differ, with the cause | 0 / 1 | 0 / 1 |" in vendor.totals(programs, False)
    assert differs.outcome == "differ: Loss. It depends on time."
    assert "| 错误的更改 | 6 | 0 |" in vendor.totals(programs, True)


@pytest.mark.parametrize("version", ["1.15", "2.6"])
def test_the_tool_is_laid_out_as_its_build_does(
    make_vendor: Any, tmp_path: pathlib.Path, monkeypatch: Any, version: str
) -> None:
    names = ["ast_impl.py", "config.py", "main.py", "mappings/ast.json", "tf1.15_api_support_list.xlsx"]
    names += ["v2/ast_impl_v2.py", "v2/config_v2.py", "v2/tf_func_def_v2.py", "v2/mappings/ast_v2.json"]
    names += ["v2/TF2.6_api_support_list.xlsx"]
    written: list[tuple[Any, ...]] = []

    def checkout(repository: str, commit: str, folder: str, sources: str, target: str) -> None:
        for name in names:
            path = pathlib.Path(target, folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name, encoding="utf-8")

    class Sheet:
        def to_excel(self, path: Any, **options: Any) -> None:
            written.append((path.name, options["sheet_name"]))

    @contextlib.contextmanager
    def open_book(path: str) -> Any:
        yield pathlib.Path(path)

    sheets = {"calls": Sheet(), "names": Sheet()}
    pandas = types.SimpleNamespace(read_excel=lambda path, **options: sheets, ExcelWriter=open_book)
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    monkeypatch.setattr(make_vendor.verified, "checkout", checkout)
    root = pathlib.Path(make_vendor.record_vendor.write_tool(version, "", str(tmp_path)))
    lists = {"1.15": "tf1.15_api_support_list.xlsx", "2.6": "TF2.6_api_support_list.xlsx"}
    assert written == [(lists[version], "calls"), (lists[version], "names")]
    made = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.*")}
    second = {"ast_impl.py": "v2/ast_impl_v2.py", "ast_impl_v1.py": "ast_impl.py", "config.py": "v2/config_v2.py"}
    second["mappings/ast.json"] = "v2/mappings/ast_v2.json"
    assert version == "1.15" or (second.items() <= made.items() and lists["1.15"] not in made)
    assert version == "2.6" or set(made) == set(names)


def test_a_version_without_a_tool_is_an_error(make_vendor: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="2.15.1"))
    with pytest.raises(SystemExit, match="2"):
        make_vendor.main([])
    assert "the vendor's tool is for TensorFlow 1.15 and 2.6, not 2.15.1" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--quick"], ["--missing"]])
def test_known_verdicts_of_the_vendors_tool_stay(
    make_vendor: Any,
    record_list: Any,
    record_results: Any,
    tmp_path: pathlib.Path,
    monkeypatch: Any,
    options: list[str],
) -> None:
    vendor, programs = make_vendor.record_vendor, [entry(record_list, script=name) for name in ("a.py", "b.py")]
    results(record_results, tmp_path, monkeypatch, programs)
    vendor.kept(programs).add(vendor.VendorResult(programs[0].name, "", verdict="agree"))

    def compare(self: Any, tool: str, known: Any, before: Any) -> Any:
        if self._program == programs[1] and options == ["--missing"]:
            raise FileNotFoundError("no script")
        return vendor.VendorResult(self._program.name, "new", verdict="agree" if before else "")

    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="1.15.5"))
    monkeypatch.setattr(make_vendor, "read_programs", lambda: programs)
    monkeypatch.setattr(vendor, "write_tool", lambda version, sources, folder: folder)
    monkeypatch.setattr(make_vendor.VendorMeasuring, "compare", compare)
    monkeypatch.setattr(make_vendor.record_page, "write", lambda programs: None)
    monkeypatch.setattr(make_vendor.verified, "use_stand_ins", lambda: None)
    fails = make_vendor.main(options)
    made = vendor.kept(programs).read()
    if options == ["--quick"]:
        assert [made[p.name].commit for p in programs] == ["new", "new"] and made[programs[0].name].verdict == "agree"
        assert not fails
    else:
        assert list(made) == [programs[0].name] and made[programs[0].name].commit == "" and fails
