"""The output of the command on a terminal and in a pipe."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from convert_tf2npu.engine.results import CHANGE, FINDING, Calls, Diagnostic, FileResult, failed
from convert_tf2npu.main import main
from convert_tf2npu.report.text import calls_sentence, printable, statistics, summary
from convert_tf2npu.rules.registry import Registry

SCRIPT = "import tensorflow as tf\n\ntf.Session()\ntf.Session(**kw)\n"
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "convert_tf2npu" / "main.py"


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(SCRIPT)
    return tmp_path / "src"


def on_terminal(arguments: list[str], **changes: str) -> str:
    """Return the output of the command where both streams are a terminal."""
    environment: dict[str, str] = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, str(TOOL)] + arguments,
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env=dict(dict(environment, TERM="xterm"), **changes),
    )
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    process.wait()
    return b"".join(pieces).decode().replace("\r\n", "\n")


def test_a_person_gets_colours(project: pathlib.Path) -> None:
    text = on_terminal(["-i", str(project)])
    path = project / "a.py"
    assert f"\x1b[1m{path}:4:1:\x1b[0m \x1b[33mNPU101\x1b[0m not converted: " in text
    assert "\n\x1b[32m+tf.Session(config=npu_config_proto())\x1b[0m\n" in text
    assert "\n\x1b[31m-tf.Session()\x1b[0m\n" in text and "\n\x1b[36m@@ " in text


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_can_be_switched_off(changes: dict[str, str], project: pathlib.Path) -> None:
    text = on_terminal(["-i", str(project)], **changes)
    assert "\x1b" not in text and "a.py:4:1: NPU101 not converted: " in text


def test_a_pipe_gets_neither_colours_nor_a_bar(project: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "-i", str(project), "--check"],
        capture_output=True,
        env=dict(os.environ, TERM="xterm"),
    )
    assert b"\x1b" not in done.stdout and b"\r" not in done.stdout and done.stderr == b""


def test_names_cannot_steer_the_terminal(project: pathlib.Path, capsys: Any) -> None:
    (project / "a.py").rename(project / "a\x1b[2J\nb.py")
    assert main(["-i", str(project), "--check"]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out and "a\\x1b[2J\\nb.py:4:1: NPU101" in out


@pytest.mark.parametrize(
    "text, shown", [("a\nb", "a\\nb"), ("\x07\x9b", "\\x07\\x9b"), ("\u00fc \u6587", "\u00fc \u6587")]
)
def test_control_characters_are_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_the_reports_are_pointed_at(project: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    main(["-i", str(project), "--check", "-r", str(tmp_path / "r")])
    assert f"Reports: {tmp_path / 'r' / 'report.html'}, also as .json, .sarif and .txt.\n" in capsys.readouterr().out


# --- counts -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "calls, files, sentence",
    [
        (Calls(33, 6, 2), 13, "41 TensorFlow calls in 13 files: 33 fine, 6 rewritten, 2 need a manual change"),
        (Calls(0, 0, 1), 1, "1 TensorFlow call in 1 file: 0 fine, 0 rewritten, 1 needs a manual change"),
        (Calls(), 0, "0 TensorFlow calls in 0 files: 0 fine, 0 rewritten, 0 need a manual change"),
    ],
    ids=["many", "one", "none"],
)
def test_one_sentence_counts_the_calls(calls: Calls, files: int, sentence: str) -> None:
    assert calls_sentence(calls, files) == sentence


def result(*kinds: str) -> FileResult:
    return FileResult(
        b"" if CHANGE in kinds else None,
        tuple(Diagnostic(1, 1, "NPU101", kind, "") for kind in kinds),
        Calls(1, len(kinds), 0),
    )


@pytest.mark.parametrize(
    "results, sentence",
    [
        ([], "0 Python files, 0 changed; 0 rewrites, 0 places need a manual change."),
        ([result(CHANGE)], "1 Python file, 1 changed; 1 rewrite, 0 places need a manual change."),
        (
            [result(CHANGE, CHANGE), result(FINDING), failed("no")],
            "3 Python files, 1 changed, 1 unreadable; 2 rewrites, 1 place needs a manual change.",
        ),
        (
            [failed("no"), failed("no")],
            "2 Python files, 0 changed, 2 unreadable; 0 rewrites, 0 places need a manual change.",
        ),
    ],
    ids=["none", "one", "each", "none readable"],
)
def test_one_sentence_counts_the_files(results: list[FileResult], sentence: str) -> None:
    assert summary([("a.py", one) for one in results])[1] == sentence


def test_statistics_count_the_findings_of_each_rule() -> None:
    found = list(statistics([("a", result(CHANGE, FINDING, CHANGE)), ("b", failed("no"))], Registry()))
    assert [re.sub(" +", " ", line) for line in found] == [
        " 3 NPU101 Give every session the NPU configuration (2 rewritten, 1 not converted)",
        " 1 NPU000 Unreadable files",
    ]
