"""``npu-shim migrate`` takes back exactly the rewrites with which a program departs, and writes whole programs."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any, Sequence

import pytest

from npu_shim.cli import main
from npu_shim.import_hook import tool
from npu_shim.import_hook.outside_files import imported_from_outside
from npu_shim.rehearsal.files.kept import JOURNAL, STORE
from npu_shim.rehearsal.migrating import plan, reports
from npu_shim.rehearsal.migrating.bisection import departing_rewrites
from npu_shim.rehearsal.migrating.migration import FACTS, SOURCE, TAKEN_BACK, Rewrite
from npu_shim.rehearsal.migrating.plan import Migrating, NotObserved
from npu_shim.rehearsal.migrating.program import OutputExists, Program
from npu_shim.rehearsal.result import AGREE, DIFFER, Result
from samples import training

tool.make_importable()

NAMES = [f"NPU{number}:train.py:{number}" for number in range(101, 108)]


@pytest.mark.parametrize(
    "guilty", [set(chosen) for size in (1, 2, 7) for chosen in itertools.combinations(NAMES, size)]
)
def test_bisection_finds_every_culprit_and_no_other(guilty: set[str]) -> None:
    asked = []

    def agrees(without: Sequence[str]) -> bool:
        asked.append(tuple(without))
        return guilty <= set(without)

    found = departing_rewrites(NAMES, agrees)
    assert found is not None and set(found) == guilty and len(found) == len(guilty)
    assert len(asked) <= 1 + 4 * len(guilty)


def test_a_program_that_departs_without_them_has_no_culprits() -> None:
    assert departing_rewrites(NAMES, lambda without: False) is None
    assert departing_rewrites([], lambda without: True) is None


SCRIPT = """import helper
import tensorflow as tf

rows = tf.boolean_mask(helper.x, helper.x > 0)
print(rows)
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder of a program of two files; it is the current one."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("y = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rules(**given: object) -> argparse.Namespace:
    from npu_shim.import_hook.migrated_run import rule_arguments

    return argparse.Namespace(**{**vars(rule_arguments()), **given})


def test_a_program_is_the_files_that_the_script_imports(folder: pathlib.Path) -> None:
    program = Program("train.py", rules(), [])
    assert sorted(program.relative_paths) == ["helper.py", "train.py"]
    program.write_files("out", False)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["helper.py", "train.py"]
    program.write_files("out", False)  # nothing differs
    (folder / "out" / "helper.py").write_text("mine\n")
    (folder / "out" / "train.py").unlink()
    with pytest.raises(OutputExists, match="helper.py exists and differs. Give another folder, or --force"):
        program.write_files("out", False)
    assert (folder / "out" / "helper.py").read_text() == "mine\n" and not (folder / "out" / "train.py").exists()
    program.write_files("out", True)
    assert (folder / "out" / "helper.py").read_text() == "x = 1\n"


def test_files_that_only_a_run_imports_belong_to_the_program(folder: pathlib.Path) -> None:
    assert "other.py" in Program("train.py", rules(), [str(folder / "other.py")]).relative_paths


def test_a_file_that_has_two_paths_is_migrated_once(folder: pathlib.Path) -> None:
    (folder / "package").symlink_to(".")
    (folder / "train.py").write_text("import package.other\n")
    program = Program("train.py", rules(), [str(folder / "other.py")])
    assert sorted(program.relative_paths) == ["package/other.py", "train.py"]


def test_files_behind_a_link_belong_to_the_program(folder: pathlib.Path) -> None:
    package = folder / "lib" / "package"
    (folder / "scripts").mkdir()
    package.mkdir(parents=True)
    for name in "__init__.py", "first.py", "second.py":
        (package / name).write_text("")
    (folder / "scripts" / "package").symlink_to("../lib/package")
    (folder / "scripts" / "train.py").write_text("import package.first\n")
    observed = [str(package / "second.py"), str(folder / "scripts" / ".." / "other.py")]
    program = Program("scripts/train.py", rules(), observed)
    assert sorted(program.relative_paths) == [f"package/{name}.py" for name in ("__init__", "first", "second")] + [
        "train.py"
    ]


class _Tries(Migrating):
    """A migration whose observed run, rewrites and verifications are given."""

    outside: tuple[str, ...] = ()
    guilty: set[str] = set()
    tried: list[tuple[str, ...]] = []

    def _observe_facts(self) -> str:
        from convert_tf2npu.api import Facts, FileFacts, ObservedRun, digest

        path = pathlib.Path(self.reports) / plan.FILE
        run = ObservedRun((self.script,), "2.15.1", "3.11.7", 5, "stopped", self.outside)
        files = {name: FileFacts(digest(pathlib.Path(name).read_bytes())) for name in ("train.py", "helper.py")}
        path.write_text(Facts(str(pathlib.Path.cwd()), (run,), files).to_text(str(path)))
        return str(path)

    def _verify(self, rules: argparse.Namespace, program: Program) -> Result:
        example = pathlib.Path(__file__).resolve().parents[2] / "docs" / "verify_example.json"
        result = Result.from_json(json.loads(example.read_text(encoding="utf-8")))
        result.verdict = AGREE if self._program_agrees(rules, program) else DIFFER
        return result

    def _program_agrees(self, rules: argparse.Namespace, program: Program) -> bool:
        self.tried.append(rules.no_facts_for)
        return self.guilty <= set(rules.no_facts_for)


def entry(rewrite: Rewrite) -> str:
    return f"{rewrite.code}:{rewrite.path}:{rewrite.line}"


def rewrite(line: int, basis: str) -> Rewrite:
    return Rewrite("train.py", line, 1, f"NPU{100 + line}", "made so", basis, 1 if basis == FACTS else None)


@pytest.mark.parametrize("departs", ["NPU103", "NPU101", ""])
def test_a_rewrite_that_departs_is_taken_back(
    departs: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [rewrite(1, SOURCE), *(rewrite(line, FACTS) for line in (2, 3, 4))]
    monkeypatch.setattr(_Tries, "guilty", {entry(each) for each in known if each.code == departs})
    monkeypatch.setattr(_Tries, "tried", [])

    def rewrites(self: Program) -> list[Rewrite]:
        departs_alone = {entry(each) for each in known if each.code == departs and each.basis == FACTS}
        return [each for each in known if not _Tries.tried or entry(each) not in departs_alone]

    monkeypatch.setattr(Program, "rewrites", rewrites)
    (folder / "reports").mkdir()
    lines: list[str] = []
    result = _Tries("train.py", [], "out", "reports", rules(), 5, False, None, lines.append).migrate()
    assert result.notes[0].startswith("Each observed run ended after its steps.")
    bases = {each.code: each.basis for each in result.rewrites}
    if departs == "NPU103":
        assert bases == {"NPU101": SOURCE, "NPU102": FACTS, "NPU103": TAKEN_BACK, "NPU104": FACTS}
        assert result.verified.verdict == AGREE
        assert result.notes[1:] == [
            "Taken back, because the program computes something else with it: NPU103 at train.py:3:1."
        ]
    else:  # a rewrite that the source proves is not taken back
        assert TAKEN_BACK not in bases.values() and len(bases) == 4
        assert result.verified.verdict == (DIFFER if departs else AGREE)
        assert len(result.notes) == 1 + bool(departs)
    text, page = reports.to_text(result), reports.to_html(result)
    assert "seen in 1 run" in page and ("taken back" in page) == (departs == "NPU103")
    assert (
        re.match(r"out: 2 files, 0 changed; \d rewrites, \d by what 1 observed run showed\.\n", text)
        and "To change by hand: 1 place in code that ran, 0 not reached." in text
    )


def test_files_outside_of_the_folder_are_named(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Tries, "outside", ("../lib/model.py", "../lib/ops.py"))
    (folder / "reports").mkdir()
    result = _Tries("train.py", [], "out", "reports", rules(), 5, False, None, print).migrate()
    assert result.notes[1] == (
        "Not converted, because outside of the folder of the program: ../lib/model.py and 1 more file. "
        "To convert all, give --project ..."
    )


def test_imports_from_outside_are_those_of_the_user(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"scripts/inner.py": "tensorflow", "lib/model.py": "tensorflow", "lib/plain.py": "os"}
    texts["lib/site-packages/installed.py"] = "keras"
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'"""{text}"""\n')
        monkeypatch.syspath_prepend(str(file.parent))
        monkeypatch.delitem(sys.modules, file.stem, raising=False)
        importlib.import_module(file.stem)
    outside = imported_from_outside(str(folder / "scripts"))
    assert [path for path in outside if path.startswith("../lib")] == ["../lib/model.py"]
    for path in texts:
        monkeypatch.delitem(sys.modules, pathlib.Path(path).stem)


def test_a_migrated_program_that_trains_nothing_may_lack_files(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_steps(self: _Tries, rules: argparse.Namespace, migrated: str) -> Result:
        result = with_steps(self, rules, migrated)
        result.migrated = dataclasses.replace(result.migrated, steps=0)
        return result

    with_steps = _Tries._verify
    monkeypatch.setattr(_Tries, "_verify", without_steps)
    (folder / "reports").mkdir()
    result = _Tries("train.py", [], "out", "reports", rules(), 5, False, None, print).migrate()
    assert result.verified.original.steps and "If the script reads others from its own folder" in result.notes[-1]


@pytest.mark.parametrize(
    "line, advice",
    [
        ("raise ValueError('no data')", ""),
        ("import horovod.nothing", "horovod is not installed: set NPU_SHIM_ALIAS=1, and npu_shim serves it. "),
    ],
)
def test_an_original_that_fails_is_named_with_its_last_lines(folder: pathlib.Path, line: str, advice: str) -> None:
    (folder / "train.py").write_text(line + "\n")
    (folder / "reports").mkdir()
    given = Migrating("train.py", [], "out", "reports", rules(), None, False, 600.0, lambda line: None)
    with pytest.raises(
        NotObserved, match=f"train.py ended with exit code 1. {advice}The whole output is in reports/observe.log"
    ):
        given.migrate()
    assert not (folder / "out").exists()


def test_facts_of_an_interrupted_run_are_used_again(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "reports").mkdir()
    lines: list[Any] = []
    given = _Tries("train.py", [], "out", "reports", rules(), 5, False, None, lines.append)
    path = given._observe_facts()
    assert Migrating._observe_facts(given) == path
    assert lines == [f"using the facts in {path}. Remove the file to observe again"]


def test_copies_that_a_killed_command_left_are_not_overwritten(folder: pathlib.Path, capsys: Any) -> None:
    store = folder / "out_report" / "verify" / "migrated" / STORE
    store.mkdir(parents=True)
    (store / "0").write_text("precious")
    (store / JOURNAL).write_text(json.dumps({"path": "weights", "copy": "0"}) + "\n")
    assert main(["migrate", "-o", "out", "train.py"]) == 2
    assert "has copies of your files, because a command was killed" in capsys.readouterr().err
    assert (store / "0").read_text() == "precious"


def test_originals_are_never_overwritten(folder: pathlib.Path) -> None:
    before = {path: path.read_bytes() for path in folder.glob("*.py")}
    for output in (".", str(folder)):
        with pytest.raises(OutputExists, match="is a file of the original. Give another folder."):
            Program("train.py", rules(), []).write_files(output, True)
    beside = folder.parent / f"{folder.name}_beside"
    beside.mkdir()
    (beside / "eval.py").write_text("import tensorflow\n")
    assert sorted(Program("train.py", rules(), [str(beside / "eval.py")]).relative_paths) == ["helper.py", "train.py"]
    assert {path: path.read_bytes() for path in folder.glob("*.py")} == before


def test_files_of_a_run_that_is_killed_are_taken_back(folder: pathlib.Path) -> None:
    (folder / "old.txt").write_text("old")
    (folder / "train.py").write_text(
        "import time\nopen('old.txt', 'w').write('new')\nopen('new.txt', 'w').close()\ntime.sleep(600)\n"
    )
    (folder / "reports").mkdir()
    given = Migrating("train.py", [], "out", "reports", rules(), None, False, 40.0, lambda line: None)
    with pytest.raises(NotObserved, match="took longer than 40 s; its output is in reports/observe.log"):
        given.migrate()
    assert (folder / "old.txt").read_text() == "old" and not (folder / "new.txt").exists()
    assert not list((folder / "reports").glob("tmp/*"))


MODULE = """import sys
import tensorflow as tf
from ..data import rows

v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [None, 4])
w = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w))))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(int(sys.argv[1])):
        session.run(train, {x: rows})
"""


def test_a_module_of_a_package_is_migrated(tmp_path: pathlib.Path) -> None:
    (tmp_path / "net" / "train").mkdir(parents=True)
    (tmp_path / "net" / "data.py").write_text("rows = [[1.0, 2.0, 3.0, 4.0]] * 8\n")
    for name, text in ("__init__", ""), ("__main__", MODULE):
        (tmp_path / "net" / "train" / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "npu_shim", "migrate", "-m", "net.train", "-o", "out", "--steps", "3", "--", "5"]
    done = subprocess.run(command, cwd=str(tmp_path), env=training.environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "The two scripts agree." in done.stdout, done.stdout + done.stderr
    assert "migrate: observed  step 3" in done.stderr and "migrate: migrated  step 3" in done.stderr
    assert "[8, 4]" in (tmp_path / "out" / "net" / "train" / "__main__.py").read_text()
    (run,) = json.loads((tmp_path / "out_report" / "facts.json").read_text())["runs"]
    assert run["command"] == ["net.train", "5"]


LIBRARY = """import tensorflow as tf

v1 = tf.compat.v1


def loss(x):
    w = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
    data = tf.data.Dataset.from_tensor_slices(x).repeat(3).shuffle(24).batch(5)
    rows = v1.data.make_one_shot_iterator(data).get_next()
    return tf.reduce_mean(tf.square(tf.matmul(rows, w))), v1.placeholder(tf.float32, [None, 4])
"""
PROGRAM = """import os
import sys
import tensorflow as tf
v1 = tf.compat.v1
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(FOLDER, "lib"))
import near
import model
import package.data

v1.disable_eager_execution()
loss, unused = model.loss(package.data.rows)
train = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(int(sys.argv[1])):
        print(session.run([train, loss, unused], {unused: near.rows})[1])
"""


@pytest.mark.once_tf115
def test_a_program_with_files_outside_of_the_folder_of_the_script_is_migrated(tmp_path: pathlib.Path) -> None:
    project = tmp_path / "project"
    texts = {
        "scripts/train.py": PROGRAM,
        "scripts/near.py": "rows = [[1.0, 2.0, 3.0, 4.0]] * 8\n",
        "lib/model.py": LIBRARY,
        "source/package/__init__.py": "import tensorflow as tf\n",
        "source/package/data.py": "import tensorflow as tf\nrows = [[1.0, 2.0, 3.0, 4.0]] * 8\n",
    }
    for name, text in texts.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)

    def started(*words: str) -> subprocess.CompletedProcess[str]:
        environment = training.environment()
        paths = [str(project / "source"), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        command = [sys.executable, "-m", "npu_shim", *words]
        return subprocess.run(command, cwd=str(project / "scripts"), env=environment, capture_output=True, text=True)

    done = started("migrate", "-o", "../out", "--project", "..", "train.py", "--", "5")
    assert done.returncode == 0 and "The two scripts agree." in done.stdout, done.stdout + done.stderr
    assert "outside of" not in done.stdout + done.stderr
    migrated = [str(path.relative_to(project / "out")) for path in sorted((project / "out").rglob("*.py"))]
    assert migrated == sorted(texts)
    assert "npu_config_proto" in (project / "out/scripts/train.py").read_text()
    assert "[8, 4]" in (project / "out/lib/model.py").read_text()
    # the migrated script imports the package of the output, though the search path names that of the original
    (project / "out/source/package/data.py").write_text("rows = [[2.0, 2.0, 3.0, 4.0]] * 8\n")
    done = started("migrate", "-o", "../out", "--project", "..", "train.py", "--", "5")
    assert done.returncode == 2 and "package/data.py exists and differs" in done.stderr
    for words, code, is_named in (("--project", ".."), 0, False), ((), 0, True), (("--copy",), 2, False):
        done = started("verify", *words, "train.py", "--", "5")
        assert done.returncode == code, done.stdout + done.stderr
        assert ("Not converted, because outside of " in done.stdout) == is_named, done.stdout
    done = started("verify", "--copy", "--project", "..", "train.py", "--", "5")  # the copy has all files
    assert done.returncode == 0, done.stdout + done.stderr
    done = started("run", "train.py", "5")
    assert "npu-shim run: not converted, because outside of " in done.stderr, done.stderr
    assert "../lib/model.py and 2 more files. To convert all, give a folder that has all with -i\n" in done.stderr


@pytest.mark.once_tf115
def test_files_of_the_original_that_the_migrated_script_imports_are_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__init__.py").write_text("")
    (tmp_path / "net" / "model.py").write_text(LIBRARY)
    program = (
        PROGRAM.replace('os.path.join(FOLDER, "lib")', '"."').replace("import near\n", "").replace("near", "model")
    )
    program = program.replace("import model\nimport package.data", "import net.model as model")
    program = program.replace("package.data.rows", "model.rows")
    (tmp_path / "net" / "train.py").write_text(program)
    (tmp_path / "net" / "model.py").write_text(f"{LIBRARY}\nrows = [[1.0, 2.0, 3.0, 4.0]] * 8\n")
    command = [sys.executable, "-m", "npu_shim", "migrate", "-o", "out", "net/train.py", "--", "5"]
    done = subprocess.run(command, cwd=str(tmp_path), env=training.environment(), capture_output=True, text=True)
    sentence = "The migrated script imported files of the original, which compare with themselves: ../net/model.py. "
    assert done.returncode == 0 and sentence in done.stdout, done.stdout + done.stderr


def test_a_script_is_in_the_folder_of_its_project(folder: pathlib.Path, capsys: Any) -> None:
    (folder / "other").mkdir()
    message = "train.py is outside of other. Give the folder of the project that has it."
    for words in ("migrate", "-o", "out"), ("verify",), ("observe",):
        assert main([*words, "--project", "other", "train.py"]) == 2
        assert message in capsys.readouterr().err


def test_a_script_and_a_module_are_one_too_many(folder: pathlib.Path, capsys: Any) -> None:
    for given, message in (
        (["-m", "helper", "train.py"], "give a script, or -m and a module"),
        (["-m", "no"], "no.py. Give the script that trains, or a module of this folder"),
    ):
        with pytest.raises(SystemExit):
            raise SystemExit(main(["migrate", "-o", "out", *given]))
        assert message in capsys.readouterr().err
