"""The record and other scripts of docs/ that run public code: the list is valid, pages have the kept results."""

from __future__ import annotations

import os
import pathlib
import random
import re
import subprocess
import sys
import types
from typing import Any
from xml.etree import ElementTree

import pytest

from npu_shim.rehearsal import verifying
from tests.docs_modules import entry, keep_results, load

pytestmark = pytest.mark.once
make_record: Any = load("make_record")
record_list: Any = sys.modules["record_list"]
record_page: Any = make_record.record_page
record_results: Any = sys.modules["record_results"]


def table_of(page: pathlib.Path, maker: Any) -> str:
    """The table in a page."""
    return page.read_text(encoding="utf-8").split(maker._BEGIN)[1].split(maker._END)[0]


def test_the_pages_have_the_tables_of_all_kept_results(repo_root: pathlib.Path) -> None:
    docs = repo_root / "docs"
    programs = record_list.read_programs()
    for chinese, name in enumerate(("record.md", "zh/record.md")):
        expected = record_page.page(programs, bool(chinese))
        assert table_of(docs / name, record_page) == expected, "Run python docs/make_record.py --table"
        readme = repo_root / ("README.zh-CN.md" if chinese else "README.md")
        assert table_of(readme, record_page) == record_page.sentence(programs, bool(chinese)), "Run it with --table"
    later, exports = load("make_later_names"), load("make_exports")
    assert table_of(docs / "public-code.md", later) == later.table()
    assert table_of(docs / "public-models.md", exports) == exports.table()


def test_each_result_belongs_to_a_program_and_has_what_its_program_asks_for(repo_root: pathlib.Path) -> None:
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


def test_each_script_that_is_compared_across_versions_has_its_row(repo_root: pathlib.Path) -> None:
    versions = load("make_versions")
    rows = versions.known()
    assert list(rows) == list(versions.PAIRS) and all(rows.values())
    assert len({pair.script for pair in versions.PAIRS}) == 10
    for pair, row in rows.items():
        assert row.endswith(f" {pair.cause} |") if " differ " in row else " agree " in row, row
    assert table_of(repo_root / "docs" / "verify.md", versions) == versions.table(rows)


def test_each_difference_to_a_later_version_has_its_cause() -> None:
    later = load("make_later_names")
    made = later.kept().read()
    assert all(
        made[script.name].verdict == "agree" or later.CAUSES[script.script]
        for script in later.SCRIPTS
        if script.name in made
    )


PACKAGES = 'packages = { "1.15" = [] }\n'
ROW = """
[[program]]
repository = "owner/name"
commit = "abc1234"
script = "train.py"
tensorflow = "1.15"
kind = "session"
origin = "drawn"
"""


def test_a_row_has_its_values(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "programs.toml"
    more = """folder = "examples"
project = ".."
arguments = "--batch_size=4"
further_runs = ["--evaluate"]
observed_steps = 30
data = [["digits", "data", "20", "10"], ["waves", "sound", "2", "1"]]
links = [["data/a", "b"]]
edits = [["train.py", 'rate = (\\d)', '\\1']]
why = "Smaller sizes."
defect = { kind = "rate", edits = [["train.py", "a", "b"]] }
ranks = 2
"""
    path.write_text(PACKAGES + ROW + more, encoding="utf-8")
    (program,) = record_list.read_programs(str(path))
    assert program.name == "owner/name/examples/train.py@1.15" and program.steps == 20 and program.ranks == 2
    options = ["--steps", "30", "--project", "..", "train.py"]
    assert program.observed == [[*options, "--batch_size=4"], [*options, "--evaluate"]]
    assert program._replace(observed_steps=0, project="").observed[1] == ["--steps", "20", "train.py", "--evaluate"]
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
        (ROW.replace("1.15", "1.14"), "the list has no packages for TensorFlow 1.14"),
        (ROW + "arguments = 3", "arguments must not be 3"),
        (ROW + 'edits = [["a", "b"]]', "edits .* missing 1 required positional argument: 'replacement'"),
        (ROW + 'edits = [["a", "(", "c"]]', "edits missing \\), unterminated subpattern"),
        (ROW + 'edits = [["a", "b", "c"]]', "why is missing. Give the reason of the edits"),
        (ROW + 'links = "a"', "links must not be 'a'"),
        (ROW + 'reason = "no data"', "reason must be one sentence that ends with a full stop"),
        (ROW + "defect = { kind = 'a' }", "defect 'edits'"),
        (ROW + ROW, "program 2 .*: the same script is in the list already"),
        (ROW + "steps = ", "programs.toml: "),
    ],
)
def test_a_mistake_of_the_list_names_row_and_key(tmp_path: pathlib.Path, text: str, message: str) -> None:
    path = tmp_path / "programs.toml"
    path.write_text(PACKAGES + text, encoding="utf-8")
    with pytest.raises(record_list.ListError, match=message):
        record_list.read_programs(str(path))


def test_programs_are_chosen_by_version_name_missing_result_and_sample(
    tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    first, second = entry(), entry(script="other.py")
    programs = [first, second, entry(tensorflow="2.15"), entry(script="b.py", reason="No.")]
    agrees = record_results.Result(first.name, "abc1234", verdict="agree")
    keep_results(tmp_path, monkeypatch, programs, agrees)
    assert make_record.chosen(programs, "1.15.5", "", False, None) == [first, second]
    assert make_record.chosen(programs, "1.15.5", "train", False, None) == [first]
    assert make_record.chosen(programs, "1.15.5", "", True, None) == [first, second]  # without counts
    keep_results(tmp_path, monkeypatch, programs, agrees._replace(calls=50))
    assert make_record.chosen(programs, "1.15.5", "", True, None) == [first, second]  # without its planted defect
    keep_results(tmp_path, monkeypatch, programs, agrees._replace(calls=50, defect="differ at step 1: rate"))
    assert make_record.chosen(programs, "1.15.5", "", True, None) == [second]
    assert len(make_record.chosen(programs, "1.15.5", "", False, 1)) == 1
    assert make_record.chosen(programs, "1.15.5", "", False, 9) == [first, second]


def test_a_name_that_no_program_has_is_an_error(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="1.15.5"))
    monkeypatch.setattr(make_record, "read_programs", lambda: [entry()])
    with pytest.raises(SystemExit, match="2"):
        make_record.main(["--only", "nosuch"])
    assert "no program matches 'nosuch' that runs here with TensorFlow 1.15.5" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["make_exports", "make_later_names", "make_versions"])
def test_other_scripts_name_an_entry_that_they_do_not_have(capsys: Any, name: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        load(name).main(["--only", "nosuch"])
    assert "no entry matches 'nosuch'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "result", "expected"),
    [
        ({"defect": None}, {"calls": 5}, False),
        ({"defect": None}, {}, True),
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
def test_a_row_without_a_declared_figure_is_missing(program: Any, result: Any, expected: bool) -> None:
    measured = record_results.Result("a", "b", verdict="agree")._replace(**result)
    assert record_results.is_missing(entry(**program), measured) is expected
    assert record_results.is_missing(entry(**program), None)


def test_a_kept_result_leaves_the_others_and_makes_a_row_and_the_counts(
    tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    first, second = entry(), entry(script="other.py", defect=None, cause="It races.")
    third = entry(script="third.py", defect=None, reason="It needs a display.")
    programs = [first, second, third]
    chance = record_results.Result(
        second.name, "abc1234", verdict="not reproducible", reason="Loss.", steps=20, names=31
    )
    agrees = record_results.Result(
        first.name, "1234567", 50, 4, 1, 2, 3, 7, 20, 30, "agree", defect="differ at step 1: rate"
    )
    keep_results(tmp_path, monkeypatch, programs, chance, agrees._replace(seconds=8, date="2026-01-02"))
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


def test_the_headline_counts_programs_once_and_by_what_they_declare(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    first = entry(ranks=2, export="model.h5")
    twice = first._replace(tensorflow="2.15")
    old, fails = entry(script="old.py", defect=None, not_on_ranks="other rows"), entry(script="fails.py")
    read = entry(script="read.py", reason="It needs a display.", defect=None)
    later = entry(script="later.py", origin=record_list.CHOSEN)
    programs = [first, twice, old, fails, read, later]
    agrees = record_results.Result(first.name, "abc1234", 50, 4, 1, 2, 3, 7, 20, 30, "agree", defect="differ at 1")
    rows = [
        agrees._replace(ranks="agree"),
        agrees._replace(name=twice.name, verdict="differ", reason="Loss.", export="not exported: no", calls=60),
        record_results.Result(old.name, "abc1234", verdict="agree"),
        record_results.Result(fails.name, "abc1234", verdict="original trains nothing here"),
    ]
    keep_results(tmp_path, monkeypatch, programs, *rows)
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
    assert total["not comparable on several ranks, with the reason"] == "1"
    assert "| not comparable: other rows |" in record_page.table(programs, False)
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
def test_a_row_that_got_worse_says_in_what(changes: Any, sentences: list[str]) -> None:
    before = record_results.Result("a", "b", reached=2, verdict="not reproducible")
    before = before._replace(defect="differ at step 1", ranks="agree", export="equal: 1e-7")
    assert record_results.worse(before, before._replace(**changes)) == sentences
    assert record_results.worse(None, before) == []


def test_a_row_that_got_worse_has_its_former_figures_until_it_gets_better() -> None:
    before = record_results.Result("a", "b", reached=1, verdict="agree", date="2026-11-28", version="0b7387c2")
    now = before._replace(verdict="differ", reason="Loss.", reached=3, date="2026-11-29", version="92ce5016")
    shown = record_results.with_former_figures(before, now)
    assert shown.was == "was agree; 1 left in reached code on 2026-11-28 0b7387c2"
    assert record_results.with_former_figures(shown, now._replace(date="2026-11-30")).was == shown.was
    assert record_results.with_former_figures(shown, before).was == ""
    assert record_results.with_former_figures(None, now) == now


def test_a_worse_row_is_printed_and_kept_with_its_former_verdict(
    tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    programs, kept = [entry()], make_record.kept
    before = make_record.Result(programs[0].name, "abc1234", verdict="agree", date="2026-01-02", version="0b7387c2")
    now = before._replace(verdict="differ", reason="At step 1: loss.", date="2026-01-03", version="92ce5016")
    keep_results(tmp_path, monkeypatch, programs, before)
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
    tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    def fail(*_: Any) -> None:
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="1.15.5"))
    monkeypatch.setattr(make_record, "read_programs", lambda: [entry()])
    monkeypatch.setattr(make_record.verified, "project", fail)
    monkeypatch.setattr(make_record.record_page, "write", lambda programs: None)
    monkeypatch.setattr(make_record.verified, "use_stand_ins", lambda: None)
    assert make_record.main(["--sources", str(tmp_path)]) == 0
    expected = f"no checkout. Run: git clone --bare https://github.com/owner/name {tmp_path}{os.sep}owner/name"
    assert expected in capsys.readouterr().err


def test_a_failure_is_that_of_the_original_a_package_or_the_conversion(
    tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    program = entry(defect=None)
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


def test_the_reason_is_the_line_of_the_error() -> None:
    graph = "\n\t [[node embedding]]\n\nFunction call stack:\ntrain_function\n"
    error = "tensorflow.python.framework.errors_impl.InvalidArgumentError:  indices[7] = 9 is not in [0, 9)"
    assert make_record.failure(f"KeyError: 'a'\nTraceback\n  File\n{error}{graph}") == error
    assert make_record.failure("Traceback\n    assert x\nAssertionError\n") == "AssertionError"
    assert make_record.failure("An Error: no\nverify did not run.\n\n") == "verify did not run."


@pytest.mark.parametrize("failing", ["observe", "verify", "main.py"])
def test_a_command_that_fails_inside_a_row_is_a_failure_of_the_conversion(
    tmp_path: pathlib.Path, monkeypatch: Any, failing: str
) -> None:
    def run(arguments: Any, *_: Any, **__: Any) -> str:
        if any(word.endswith(failing) for word in arguments):
            raise RuntimeError(f"{failing} ended with code 1:\nTraceback\nKeyError: 'loss'\n")
        return ""

    def project(program: Any, sources: str, target: str) -> str:
        os.makedirs(target)
        return "abc1234"

    result = make_record.Result("", "abc1234", verdict="agree", calls=5)
    monkeypatch.setattr(make_record.verified, "own_commit", lambda: "1234567")
    monkeypatch.setattr(make_record.verified, "run", run)
    monkeypatch.setattr(make_record.verified, "project", project)
    monkeypatch.setattr(make_record.verified, "edit", lambda folder, edits: None)
    if failing != "observe":  # main.py is the tool, for the planted defect
        monkeypatch.setattr(make_record.Measuring, "_migrated", lambda self, head: result)
    program = entry(further_runs=["--evaluate"])
    if failing == "verify":
        program = program._replace(plain=[record_list.Edit("train.py", "a", "b")])
    measured = make_record.Measuring(program, "", str(tmp_path)).measure(None)
    assert (measured.verdict, measured.reason) == ("conversion does not run", "KeyError: 'loss'")


def test_a_verdict_on_files_of_the_original_is_none() -> None:
    make_record.check_imports({"verdict": "differ", "problems": ["The first difference is at step 1: loss 'loss'."]})
    sentence = verifying.FILES_OF_ORIGINAL.format("../original/net.py", "/out")
    assert "../original/net.py" in sentence
    with pytest.raises(ValueError, match="imported files of the original, which compare with themselves: ../original"):
        make_record.check_imports({"verdict": "agree", "problems": [sentence]})


def test_a_port_is_compared_with_its_form_without_npu_code(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
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

    monkeypatch.setattr(make_record.Measuring, "_migrated", lambda self, head: head._replace(verdict="agree", calls=9))
    monkeypatch.setattr(make_record.verified, "own_commit", lambda: "1234567")
    monkeypatch.setattr(make_record.verified, "project", project)
    monkeypatch.setattr(make_record.verified, "verify", verify)
    port = entry(defect=None, plain=[record_list.Edit("**/*.py", "npu'", "cpu'")], arguments="--epochs=1")
    result = make_record.Measuring(port, "", str(tmp_path)).measure(None)
    assert (result.verdict, result.steps, result.ran, result.calls) == ("agree", 3, "abc1234", 9)
    assert seen[0].count("mode = 'cpu'") == 2 and "npu_bridge" not in seen[0] and "import tensorflow as tf;" in seen[0]
    assert seen[1] == "from npu_bridge.npu_init import *\nmode = 'npu'\n" * 2


def test_a_verdict_has_the_first_value_that_departs() -> None:
    verdict = load("verified").verdict
    problems = ["The first difference is at step 1: loss 'loss', 1 and 2.", "Before it, values differ."]
    assert verdict({"verdict": "differ", "problems": problems}) == "differ at step 1: loss 'loss', 1 and 2."
    itself = {"verdict": "not reproducible", "problems": ["The original departs from itself at step 1: loss."]}
    assert verdict(itself) == "not reproducible: The original departs from itself at step 1: loss."
    assert verdict({"verdict": "not run", "problems": ["a.py ended with exit code 1."]}) == "not run"


def test_a_project_has_the_files_of_its_commit(tmp_path: pathlib.Path) -> None:
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
    program, verified = entry(commit=commit), make_record.verified
    sources = tmp_path / "sources" / "owner"
    sources.mkdir(parents=True)
    (sources / "name").symlink_to(clone / ".git")
    assert verified.project(program, str(tmp_path / "sources"), str(tmp_path / "made")) == commit
    verified.edit(str(tmp_path / "made"), program.defect.edits)
    assert (tmp_path / "made" / "train.py").read_text(encoding="utf-8") == "rate = 0.102\n"
    with pytest.raises(ValueError, match=r"train\.py: the edit 'batch' changes nothing"):
        verified.edit(str(tmp_path / "made"), [record_list.Edit("train.py", "batch", "")])
    other = entry(commit="0" * 40)  # a clone without history
    assert commit.startswith(verified.project(other, str(tmp_path / "sources"), str(tmp_path / "head")))
    assert sorted(os.listdir(str(tmp_path / "head"))) == ["large [1].bin", "train.py"]
    blob = subprocess.check_output([*git, "rev-parse", "HEAD:examples/large [1].bin"]).decode().strip()
    (clone / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    verified.project(program, str(tmp_path / "sources"), str(tmp_path / "partial"))
    assert os.listdir(str(tmp_path / "partial")) == ["train.py"]


def test_the_draw_follows_its_list_and_each_drawn_program_has_its_row(repo_root: pathlib.Path) -> None:
    folder = repo_root / "docs" / "record"
    rows = {(p.repository, p.path) for p in record_list.read_programs() if p.origin == record_list.DRAWN}
    drawn = set()
    for name, frame, zoo in (("draw", "frame", False), ("draw_zoo", "frame_zoo", True)):
        order = (folder / f"{frame}.txt").read_text(encoding="utf-8").splitlines()
        assert order == sorted(order) and len(order) == len(set(order))
        random.Random(record_list.SEED).shuffle(order)
        _, *lines = (folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        for number, (line, listed) in enumerate(zip(lines, order), 1):
            place, what, *found = line.split("\t")
            assert (int(place), what) == (number, listed) and all(found)
            if zoo and found != ["in the list before"]:
                drawn.add(("Ascend/ModelZoo-TensorFlow", f"{what}/{found[0]}"))
            elif not zoo and found[0] == "program":
                drawn.add((what, found[1]))
    assert drawn == rows


def test_the_picture_of_the_readme_has_the_counts_of_its_row(repo_root: pathlib.Path) -> None:
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


def test_lines_of_atc_agree_in_any_order_of_inputs() -> None:
    maker = load("make_exports")
    page = '```\natc --model=a.pb --framework=3 \\\n  --input_shape="b:1,2; a:3" --out_nodes="prob:0"\n```\n'
    theirs = maker.arguments(page)
    assert theirs["input_shape"] == "b:1,2; a:3"
    ours = maker.arguments("atc --model=m.pb '--input_shape=a:3;b:1,2' --out_nodes=prob:0")
    assert maker.agreement(theirs, ours) == "same inputs and shapes; same outputs"
    assert maker.agreement(theirs, {**ours, "out_nodes": "c:0"}) == (
        "same inputs and shapes; outputs differ: `prob:0`, here `c:0`"
    )
    assert maker.agreement({"model": "a.pb"}, ours) == ""


def test_the_migrated_program_gets_the_files_of_its_folders(tmp_path: pathlib.Path) -> None:
    for name in ("original/net/x.py", "original/net/sizes.yml", "original/data/a.txt", "migrated/net/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    measuring = make_record.Measuring(entry(), "", str(tmp_path))
    measuring._link_other_files(str(tmp_path / "original"))
    made = {path.name: path.is_symlink() for path in (tmp_path / "migrated").rglob("*") if path.name != "a.txt"}
    assert made == {"net": False, "x.py": False, "sizes.yml": True, "data": True}
