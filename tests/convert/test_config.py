"""The section of pyproject.toml, its reader for older Pythons, and patterns of files."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from convert_tf2npu.cli.config import Config, _read_table, read_nearest_config
from convert_tf2npu.cli.toml_subset import TomlError, read_table
from convert_tf2npu.files.errors import UsageError
from convert_tf2npu.files.globs import matches_any_glob
from convert_tf2npu.main import main

pytestmark = pytest.mark.smoke

TABLE = "[tool.convert_tf2npu]\n"
SCRIPT = 'import tensorflow as tf\nwith tf.device("/gpu:0"):\n    tf.Session()\n'
GOOD = [
    ("", {}),
    ("x = 1\n[tool]\n[other]\na = [\n  [1, 2],\n]\n", {}),
    (TABLE, {}),
    (TABLE + "jobs = 4", {"jobs": 4}),
    ("\n" + TABLE.rstrip() + " # here\r\njobs=1_000#many\r\n\r\n", {"jobs": 1000}),
    (
        TABLE + "select = [\"NPU1\", 'NPU2']\nignore = []\n[tool.other]\nselect = 3.5\n",
        {"select": ["NPU1", "NPU2"], "ignore": []},
    ),
    (
        '[ tool . "convert_tf2npu" ]\nexclude = [ # why\n  "a b",\n\n  "c#",  # and\n]\nflag = false',
        {"exclude": ["a b", "c#"], "flag": False},
    ),
    (
        TABLE + r'"a" = "\t\"\\A\U0001f600"' + "\nb = 'C:\\x'\nc = -3\nd = true",
        {"a": '\t"\\A\U0001f600', "b": "C:\\x", "c": -3, "d": True},
    ),
    ('x = """\n[tool.convert_tf2npu]\njobs = 2\n"""\n# [tool.convert_tf2npu]\n' + TABLE + "jobs = 3\n", {"jobs": 3}),
]


@pytest.mark.parametrize("text,expected", GOOD, ids=[repr(text)[:50] for text, _ in GOOD])
def test_the_reader_reads_the_table_and_passes_over_the_rest(text: str, expected: Any) -> None:
    assert read_table(text, "tool", "convert_tf2npu") == expected


@pytest.mark.parametrize("text,expected", GOOD, ids=[repr(text)[:50] for text, _ in GOOD])
def test_every_python_finds_the_same(text: str, expected: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(text.encode("utf-8"))
    assert _read_table(str(tmp_path / "pyproject.toml")) == expected  # by tomllib where there is one


@pytest.mark.parametrize(
    "text,words,line",
    [
        ("jobs = 1.5", "expected a string, an integer", 2),
        ("jobs = 07", "begins with 0", 2),
        ('a = """x"""', "expected a string", 2),
        ("a = {}", "expected a string", 2),
        ("a = 2020-01-01", "expected a string", 2),
        ("a = [\n  1]", "expected a string in the array", 3),
        ('a = ["x"\n "y"]', "expected a comma", 3),
        ('a = ["x"', "expected a comma", 2),
        ('a = "x" "y"', "unexpected text after the value of a", 2),
        ('a = "x\n', "expected a string", 2),
        ('a = "\\q"', "not a valid escape", 2),
        ("\na", "key = value", 3),
        ("a.b = 1", "key = value", 2),
        ("a = 1\na = 2", "duplicate key a", 3),
    ],
    ids=str,
)
def test_anything_else_in_the_table_is_one_error_with_its_line(text: str, words: str, line: int) -> None:
    with pytest.raises(TomlError, match=f"at line {line}") as raised:
        read_table(TABLE + text, "tool", "convert_tf2npu")
    assert words in str(raised.value)


def test_tables_inside_the_table_are_an_error() -> None:
    with pytest.raises(TomlError, match="cannot have subtables"):
        read_table("[tool.convert_tf2npu.rules]\n", "tool", "convert_tf2npu")


def write(folder: pathlib.Path, content: str) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_bytes((TABLE + content).encode("utf-8"))
    return folder


def test_the_nearest_file_with_the_table_counts(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 'jobs = 2\nselect = ["npu1"]')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (inner / "x.py").write_text("")
    expected = Config(str(tmp_path.resolve()), select=("NPU1",), jobs=2)
    assert read_nearest_config(str(inner)) == read_nearest_config(str(inner / "x.py")) == expected
    write(tmp_path / "a", 'exclude = ["t"]')
    assert read_nearest_config(str(inner)) == Config(str((tmp_path / "a").resolve()), exclude=("t",))


@pytest.mark.parametrize(
    "content,words",
    [
        ("selct = []", "unknown key. Did you mean select?"),
        ("unheard = 1", "unknown key. The keys are compat-v1, exclude, ignore, jobs, select"),
        ('select = "NPU101"', "is not an array of strings"),
        ('select = ["NPU999"]', "there is no rule NPU999"),
        ("jobs = 0", "0 is not a number of processes. Give 1 to 1024"),
        ('jobs = "2"', "is not an integer"),
        ("jobs = true", "is not an integer"),
        ("jobs = 1x\n", "at line 2"),
    ],
    ids=str,
)
def test_an_invalid_setting_is_one_error_that_names_the_file(content, words, tmp_path, capsys) -> None:
    (write(tmp_path, content) / "a.py").write_text(SCRIPT)
    with pytest.raises(UsageError):
        read_nearest_config(str(tmp_path))
    assert main(["-i", str(tmp_path / "a.py")]) == 2
    out, error = capsys.readouterr()
    assert words in error and "pyproject.toml" in error and len(error.splitlines()) == 1 and not out


def test_the_command_line_beats_the_file(tmp_path, capsys) -> None:
    (write(tmp_path, 'select = ["NPU110"]\nexclude = ["a.py"]\njobs = 2') / "a.py").write_text(SCRIPT)
    (tmp_path / "b.py").write_text(SCRIPT)
    assert main(["-i", str(tmp_path)]) == 0
    out, error = capsys.readouterr()
    assert "+++ b/b.py" in out and "+++ b/a.py" not in out and "npu_config_proto" not in out
    assert "excluded from the migration: 1 file" in error
    assert main(["-i", str(tmp_path), "--select", "NPU101", "--exclude", "b.*"]) == 0
    out = capsys.readouterr().out
    assert "+++ b/a.py" in out and "+++ b/b.py" not in out and "/cpu:0" not in out


def test_patterns_start_from_the_folder_of_the_file_and_named_files_are_converted(tmp_path, capsys) -> None:
    write(tmp_path, 'exclude = ["src/gen/**/x.py"]')
    for name in ("src/gen/x.py", "src/gen/deep/x.py", "src/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SCRIPT)
    assert main(["-i", str(tmp_path / "src"), "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "gen" / "deep" / "x.py").read_text() == SCRIPT
    assert "npu" in (tmp_path / "out" / "x.py").read_text()
    capsys.readouterr()
    assert main(["-i", str(tmp_path / "src" / "gen" / "x.py")]) == 0
    assert "+++ b/x.py" in capsys.readouterr().out


@pytest.mark.parametrize(
    "path,pattern,expected",
    [
        ("a/tests/b.py", "tests", True),
        ("a/tests/b.py", "test", False),
        ("a/x_pb2.py", "*_pb2.py", True),
        ("a/b/c.py", "a/b", True),
        ("a/b/c.py", "b/c.py", False),
        ("a/b/c.py", "**/c.py", True),
        ("c.py", "**/c.py", True),
        ("a/b/c.py", "a/*.py", False),
        ("a/b/c.py", "a/**", True),
        ("a/b/c.py", "a/b/", True),
        ("a/b1.py", "a/b?.py", True),
        ("a/b1.py", "a/b[!2].py", True),
        ("a/b2.py", "a/b[!2].py", False),
        ("a+.py", "a+.py", True),
        ("aa.py", "a+.py", False),
    ],
    ids=str,
)
def test_patterns(path: str, pattern: str, expected: bool) -> None:
    assert matches_any_glob(path, [pattern]) is expected
