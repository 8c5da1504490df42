"""Results of earlier runs: used when nothing has changed, and never when anything has."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
from typing import Any, Callable

import convert_tf2npu
import pytest
from convert_tf2npu.engine import pool, remembered
from convert_tf2npu.engine.remembered import Memory, question_of_run
from convert_tf2npu.engine.results import PASSING, ApiCall, Calls, Diagnostic, FileResult, failed_result
from convert_tf2npu.engine.run import Exclude, convert_source
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.files.message import Message
from convert_tf2npu.main import main

pytestmark = pytest.mark.once

FILES = {
    "compat.py": "import tensorflow as tf\n",
    "train.py": "from compat import tf\nsess = tf.Session()\n",
    "old.py": 'print "x"\n',
    "plain.py": "x = 1\n",
}


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "src"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def memory(tmp_path: pathlib.Path) -> Memory:
    return Memory(str(tmp_path / "cache"))


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that were converted, and not remembered."""
    seen: list[str] = []
    real = pool.convert_files

    def converted(paths: list[str], *more: Any) -> Any:
        seen.extend(os.path.basename(path) for path in paths)
        return real(paths, *more)

    monkeypatch.setattr(pool, "convert_files", converted)
    return seen


def test_a_second_run_converts_nothing_and_finds_the_same(source, memory, conversions) -> None:
    first = convert_source(str(source), Settings(), list_calls=True, memory=memory)
    assert sorted(conversions) == sorted(FILES)
    assert first == convert_source(str(source), Settings(), list_calls=True, memory=memory)
    assert sorted(conversions) == sorted(FILES) and first.unreadable and set(first.new_bytes_by_path) == {"train.py"}


CHANGES: dict[str, Callable[[pathlib.Path], object]] = {
    "a file that another one imports": lambda s: (s / "compat.py").write_text("import numpy as tf\n"),
    "a file that nothing concerns": lambda s: (s / "plain.py").write_text("x = 2\n"),
    "a new file": lambda s: (s / "more.py").write_text(""),
    "a file that is gone": lambda s: (s / "plain.py").unlink(),
    "a name": lambda s: (s / "plain.py").rename(s / "other.py"),
    "two files that change places": lambda s: (
        (s / "plain.py").rename(s / "x"),
        (s / "old.py").rename(s / "plain.py"),
        (s / "x").rename(s / "old.py"),
    ),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_change_is_seen(change: str, source, memory, conversions) -> None:
    convert_source(str(source), Settings(), memory=memory)
    CHANGES[change](source)
    conversions.clear()
    found = convert_source(str(source), Settings(), memory=memory)
    assert conversions and found == convert_source(str(source), Settings())


@pytest.mark.parametrize(
    "settings",
    [
        Settings(ignore=("NPU101",)),
        Settings(select=("NPU2",)),
        Settings(distributed="horovod"),
        Settings(compat_v1=True),
        Settings(main="train.py"),
    ],
    ids=repr,
)
def test_other_settings_are_another_question(settings: Settings, source, memory, conversions) -> None:
    convert_source(str(source), Settings(), memory=memory)
    conversions.clear()
    assert convert_source(str(source), settings, memory=memory) == convert_source(str(source), settings)
    assert len(conversions) == 2 * len(FILES)


def test_excluded_files_are_part_of_the_key(source, memory, conversions) -> None:
    convert_source(str(source), Settings(), memory=memory)
    found = convert_source(str(source), Settings(), exclude=Exclude(("train.py",)), memory=memory)
    assert not found.new_bytes_by_path and found.excluded == ("train.py",)


def test_another_tool_is_another_question(source, monkeypatch, tmp_path) -> None:
    paths = [str(source / name) for name in FILES]
    asked = question_of_run(["-o"], paths)
    assert asked == question_of_run(["-o"], paths) != question_of_run(["-r"], paths)
    own = tmp_path / "tool"
    own.mkdir()
    (own / "rule.py").write_text("x = 1\n")
    monkeypatch.setattr(remembered, "_HERE", str(own))
    other = question_of_run(["-o"], paths)
    (own / "rule.py").write_text("x = 2\n")
    assert len({asked, other, question_of_run(["-o"], paths)}) == 3


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "cut off": lambda raw: raw[: len(raw) // 2],
    "a byte": lambda raw: raw[:-9] + b"~" + raw[-8:],
    "other new bytes": lambda raw: raw.replace(b"npu_config_proto", b"my_config_proto."),
    "no JSON": lambda raw: remembered._checksum([b"["]) + b"\n[",
    "other JSON": lambda raw: remembered._checksum([b"[[1], 7]"]) + b"\n[[1], 7]",
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_entry_is_none(damage: str, source, tmp_path, memory, conversions) -> None:
    first = convert_source(str(source), Settings(), memory=memory)
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_bytes(DAMAGE[damage](entry.read_bytes()))
    assert convert_source(str(source), Settings(), memory=memory) == first
    assert len(conversions) == 2 * len(FILES)
    assert convert_source(str(source), Settings(), memory=memory) == first
    assert len(conversions) == 2 * len(FILES)  # it is whole again


def test_a_file_that_changes_during_the_run_is_not_remembered(source, memory, monkeypatch) -> None:
    real = pool.convert_files

    def converted(paths: list[str], *more: Any) -> Any:
        yield from real(paths, *more)
        (source / "plain.py").write_text("x = 3\n")

    with monkeypatch.context() as patch:
        patch.setattr(pool, "convert_files", converted)
        convert_source(str(source), Settings(), memory=memory)
    (source / "plain.py").write_text(FILES["plain.py"])
    asked = question_of_run([], [str(source / "plain.py")])
    assert asked is not None and not os.path.exists(memory._folder)


@pytest.mark.parametrize("message", PASSING)
def test_errors_that_may_pass_are_not_remembered(message: str, memory) -> None:
    asked = question_of_run([], [])
    assert asked is not None
    memory.store(asked, [failed_result(message + "why")])
    assert memory.recall(asked) is None


def test_results_are_recalled_unchanged(memory) -> None:
    message = Message("caf\xe9 {0} \udc80 {1}", Message("{0}: {{", "{0}"), 5)
    diagnostic = Diagnostic(1, 2, "NPU101", "change", message, 3)
    call = ApiCall("tensorflow.Session", 4, 5, "change", ("NPU101", "NPU2"), 6)
    results = [
        FileResult(bytes(range(256)), (diagnostic,), Calls(1, 2, 3), (call,)),
        FileResult(None, ()),
        FileResult(b"", ()),
        FileResult(None, (diagnostic,)),
        FileResult(b"\n", ()),
    ]
    asked = question_of_run([], [])
    assert asked is not None
    memory.store(asked, results)
    assert memory.recall(asked) == results
    assert isinstance(memory.recall(asked)[0].listed[0], ApiCall)
    again = memory.recall(asked)[0].diagnostics[0].message
    assert (again.template, again.values, again.values[0].values) == (message.template, message.values, ("{0}",))


def test_a_remembered_run_speaks_the_language_that_is_asked_for(source, tmp_path, capsys) -> None:
    """Several processes hand over templates, too."""
    shown = []
    for language, *more in (["en", "-j2"], ["zh"], ["zh", "--no-cache"], ["zh", "--no-cache", "-j2"]):
        assert main(["-i", str(source), "--check", "-v", "--language", language, *more]) == 2
        shown.append(capsys.readouterr().out)
    assert " uses the NPU session configuration" in shown[0] and shown[1] == shown[2] == shown[3]
    assert " 使用 NPU 的 session 配置" in shown[1]


def test_the_longest_unused_entries_go(memory, monkeypatch) -> None:
    monkeypatch.setattr(remembered, "_MOST_ENTRIES", 2)
    asked = [question_of_run([number], []) for number in range(4)]
    for number, one in enumerate(asked):
        memory.store(one, [])
        os.utime(memory._path(one), (number, number))
    assert [memory.recall(one) is not None for one in asked] == [False, False, True, True]


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(source, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert main(["-i", str(source), "-o", str(tmp_path / "out")]) == 2
    assert "cache" not in "".join(capsys.readouterr())


def test_the_command_remembers_in_the_cache_folder_unless_switched_off(source, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "convert_tf2npu"
    assert main(["-i", str(source), "--check", "--no-cache"]) == 2 and not folder.exists()
    assert main(["-i", str(source), "--check"]) == 2 and len(list(folder.iterdir())) == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert remembered.cache_folder() == os.path.join(os.path.expanduser("~"), ".cache", "convert_tf2npu")


def test_runs_at_the_same_time_all_come_to_the_same(source, tmp_path) -> None:
    tools = str(pathlib.Path(convert_tf2npu.__file__).parent.parent)
    environment = dict(os.environ, PYTHONPATH=tools, XDG_CACHE_HOME=str(tmp_path / "home"))
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "convert_tf2npu.main", "-i", "src", "-o", f"out{number}"],
            cwd=str(tmp_path),
            env=environment,
            stdout=subprocess.PIPE,
        )
        for number in range(4)
    ]
    assert [each.communicate() and each.returncode for each in runs] == [2] * 4
    made = [{p.name: p.read_bytes() for p in (tmp_path / (f"out{number}")).iterdir()} for number in range(4)]
    assert all(each == made[0] for each in made) and b"npu_config_proto" in made[0]["train.py"]
    assert [p.suffix for p in (tmp_path / "home" / "convert_tf2npu").iterdir()] == [".run"]
