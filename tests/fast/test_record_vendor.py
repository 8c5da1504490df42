"""The vendor's tool in the record: what counts as a needless or wrong change, and the comparison of both tools."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import sys
import types
from typing import Any

import pytest

from tests.docs_modules import entry, keep_results, load

pytestmark = pytest.mark.once
make_vendor: Any = load("make_vendor")
record_list: Any = sys.modules["record_list"]
record_results: Any = sys.modules["record_results"]


@pytest.fixture
def changes_of(tmp_path: pathlib.Path) -> Any:
    """A function that counts the changes from one text of a file to another."""
    module = load("record_changes")

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
def test_the_tool_has_the_options_for_a_program(text: str, version: str, options: list[str]) -> None:
    assert load("record_vendor").options_for(text, version) == options


_VENDOR_TOOL = """
import os, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert os.path.dirname(options["-m"]) == options["-i"]
open("need_migration_doc.txt", "w").close()
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
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "main.py").write_text(_VENDOR_TOOL, encoding="utf-8")
    known = record_results.Result("", "", verdict="agree", steps=3)
    measuring = make_vendor.VendorMeasuring(entry(defect=None), "", str(tmp_path))
    result = measuring.compare(str(tmp_path / "tool"), known, None)
    assert (result.verdict, result.reason, result.lines) == (verdict, reason, lines)
    assert not os.listdir()


def test_each_result_of_the_vendors_tool_belongs_to_a_program(repo_root: pathlib.Path) -> None:
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


def test_both_tools_are_counted_in_the_same_programs(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    vendor = make_vendor.record_vendor
    programs = [entry(script=f"{number}.py") for number in range(5)]
    rows = [(p.name, "82957b9", "", verdict) for p, verdict in zip(programs, ("agree", "not run", "", "port already"))]
    keep_results(tmp_path, monkeypatch, programs, record_results.Result(programs[0].name, "", verdict="agree"))
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
def test_the_tool_is_laid_out_as_its_build_does(tmp_path: pathlib.Path, monkeypatch: Any, version: str) -> None:
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


def test_a_version_without_a_tool_is_an_error(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="2.15.1"))
    with pytest.raises(SystemExit, match="2"):
        make_vendor.main([])
    assert "the vendor's tool is for TensorFlow 1.15 and 2.6, not 2.15.1" in capsys.readouterr().err


def test_packages_that_the_tool_lacks_are_named(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="2.6.5"))
    monkeypatch.setattr(make_vendor.record_vendor, "PACKAGES", ("numpy", "no_such_package"))
    with pytest.raises(SystemExit, match="2"):
        make_vendor.main([])
    assert "needs no_such_package. docs/record.md has the command that installs them" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--quick"], ["--missing"]])
def test_known_verdicts_of_the_vendors_tool_stay(
    tmp_path: pathlib.Path,
    monkeypatch: Any,
    options: list[str],
) -> None:
    vendor, programs = make_vendor.record_vendor, [entry(script=name) for name in ("a.py", "b.py", "c.py")]
    known = record_results.Result(programs[2].name, "", verdict="agree", steps=3)  # trains since its row was made
    keep_results(tmp_path, monkeypatch, programs, known)
    vendor.kept(programs).add(vendor.VendorResult(programs[0].name, "", verdict="agree"))
    vendor.kept(programs).add(vendor.VendorResult(programs[2].name, ""))

    def compare(self: Any, tool: str, known: Any, before: Any) -> Any:
        if self._program == programs[1] and options == ["--missing"]:
            raise FileNotFoundError("no script")
        return vendor.VendorResult(self._program.name, "new", verdict="agree" if before else "")

    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(__version__="1.15.5"))
    monkeypatch.setattr(vendor, "PACKAGES", ())
    monkeypatch.setattr(make_vendor, "read_programs", lambda: programs)
    monkeypatch.setattr(vendor, "write_tool", lambda version, sources, folder: folder)
    monkeypatch.setattr(make_vendor.VendorMeasuring, "compare", compare)
    monkeypatch.setattr(make_vendor.record_page, "write", lambda programs: None)
    monkeypatch.setattr(make_vendor.verified, "use_stand_ins", lambda: None)
    fails = make_vendor.main(options)
    made = vendor.kept(programs).read()
    if options == ["--quick"]:
        assert [made[p.name].commit for p in programs] == ["new"] * 3 and made[programs[0].name].verdict == "agree"
        assert not fails
    else:
        assert [(name, row.commit) for name, row in made.items()] == [(programs[0].name, ""), (programs[2].name, "new")]
        assert fails
