"""The benchmark of the tool runs, and what it and the baseline write is right; what it measures decides nothing."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys


def test_it_runs_and_both_tools_write_plausible_output(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    files = {
        "train.py": "import tensorflow as tf\nsess = tf.Session()\n",
        "plain.py": "x = 1\n",
        "old.py": 'print "not counted"\n',
    }
    for folder in ("one", "two"):
        (tmp_path / "corpus" / folder).mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / "corpus" / folder / name).write_text(text)
    done = subprocess.run(
        [
            sys.executable,
            str(repo_root / "benchmarks" / "tool_throughput.py"),
            "--corpus",
            str(tmp_path / "corpus"),
            "--quick",
            "--larger",
            "1",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    sides = ("floor", "floor, two processes", "convert_tf2npu", "convert_tf2npu, two processes", "tf_upgrade_v2")
    assert "4 files, 6 lines" in done.stdout and all(f"| {name} |" in done.stdout for name in sides)
    assert "| 2 files without TensorFlow |" in done.stdout
    assert "4 files of 6 lines" in done.stdout and "| these files |" in done.stdout


def test_it_grows_with_files(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for number in range(12):
        (tmp_path / (f"train{number}.py")).write_text("import tensorflow as tf\n")
    done = subprocess.run(
        [sys.executable, str(repo_root / "benchmarks" / "tool_growth.py"), "--corpus", str(tmp_path), "--quick"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0 and "| packages | 10 | 10 |" in done.stdout, done.stdout[-3000:]
    (upgrade,) = re.findall(r"\| a small script \| 1 \| \d+ \| 1 \|.*\| ([\d.]+) s \|", done.stdout)
    assert float(upgrade) > 0.5  # it has the import of TensorFlow


def test_files_that_another_python_cannot_read_are_left_out(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for name, text in (("new.py", "x = 1\n"), ("old.py", 'print "not read"\n')):
        (tmp_path / name).write_text(text)
    subprocess.run([sys.executable, str(repo_root / "benchmarks" / "tool_corpus.py"), str(tmp_path)], check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["new.py"]


def test_implausible_output_is_found(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    sys.path.insert(0, str(repo_root / "benchmarks"))
    try:
        import tool_corpus
    finally:
        del sys.path[0]
    source, made = tmp_path / "source", tmp_path / "made"
    for folder in (source, made):
        folder.mkdir()
    for name, text, new in (
        ("gone.py", "x = 1\n", None),
        ("bad.py", "import tensorflow\n", "x = (\n"),
        ("why.py", "x = 1\n", "x = 2\n"),
        ("fine.py", "import tensorflow\n", "x = 2\n"),
    ):
        (source / name).write_text(text)
        if new is not None:
            (made / name).write_text(new)
    found = tool_corpus.wrong(source, {"tool": made}, [b"tensorflow"])
    assert [line.split()[-1] for line in found] == ["Python", "missing", "TensorFlow"] and len(found) == 3
