"""The output of the command on a terminal and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pathlib
import re
import struct
import subprocess
import sys
import termios
from typing import Any

import pytest
from convert_tf2npu.engine.results import CHANGE, FINDING, Calls, Diagnostic, FileResult, failed_result
from convert_tf2npu.main import main
from convert_tf2npu.report.code_frame import SourceLines
from convert_tf2npu.report.text import calls_sentence, printable_text, statistics_lines, summary_sentences
from convert_tf2npu.rules.registry import Registry

SCRIPT = "import tensorflow as tf\n\ntf.Session()\ntf.Session(**kw)\n"
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "convert_tf2npu" / "main.py"


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(SCRIPT)
    return tmp_path / "src"


def on_terminal(arguments: list[str], columns: int = 200, **changes: str) -> str:
    """Return the output of the command where both streams are a terminal."""
    environment: dict[str, str] = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
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


@pytest.mark.parametrize(
    "changes, coloured",
    [
        ({}, False),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
    ids=str,
)
def test_a_pipe_gets_colours_if_it_is_asked_for(
    changes: dict[str, str], coloured: bool, project: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    assert main(["-i", str(project), "--check"]) == 1
    assert ("\x1b[33mNPU101\x1b[0m" in capsys.readouterr().out) is coloured


# --- the code of a finding ---------------------------------------------------------


def test_the_code_of_a_finding_is_shown_on_a_terminal(project: pathlib.Path) -> None:
    path = project / "a.py"
    shown = "    4 | tf.Session(**kw)\n      | ^^^^^^^^^^\n"
    assert shown in on_terminal(["-i", str(project)], NO_COLOR="1")
    assert shown in on_terminal(["-i", str(project), "--in-place"], NO_COLOR="1")  # as it was before
    assert "from npu_shim" in path.read_text()
    assert "^" not in on_terminal(["-i", str(project), "--no-show-source"], NO_COLOR="1")


def test_the_code_of_a_finding_is_shown_in_a_pipe_if_it_is_asked_for(project: pathlib.Path, capsys: Any) -> None:
    main(["-i", str(project), "--check"])
    assert "^" not in capsys.readouterr().out
    main(["-i", str(project), "--check", "--show-source"])
    assert "\n    4 | tf.Session(**kw)\n      | ^^^^^^^^^^\n" in capsys.readouterr().out


LONG = "value = first_name_of_all + second_name_of_all + tf.Session(**kw) + third_name_of_all + fourth_name"


@pytest.mark.parametrize(
    "line, name, columns, code, mark",
    [
        ("\ttf.Session(x)", "tf.Session", None, "tf.Session(x)", "^" * 10),
        ("a\t= tf.Session(x)", "tf.Session", None, "a       = tf.Session(x)", " " * 10 + "^" * 10),
        (
            "t = '\u6587\u5b57', tf.Session(x)",
            "tf.Session",
            None,
            "t = '\u6587\u5b57', tf.Session(x)",
            " " * 12 + "^" * 10,
        ),
        ("a = '\x1b[2J', tf.x", "tf.x", None, "a = '\\x1b[2J', tf.x", " " * 15 + "^" * 4),
        (LONG, "tf.Session", None, LONG, " " * 49 + "^" * 10),
        (LONG, "tf.Session", 48, "...e_of_all + second_name_of_all + tf.Session(**kw) + t..."[22:], None),
    ],
    ids=["tab", "inner tab", "wide letters", "controls", "long in a pipe", "narrow"],
)
def test_the_mark_is_below_the_name(
    line: str, name: str, columns: int | None, code: str, mark: str | None, tmp_path: pathlib.Path
) -> None:
    path = str(tmp_path / "a.py")
    one = Diagnostic(1, line.index(name) + 1, "NPU101", FINDING, "")
    frame = SourceLines([(path, FileResult(None, (one,), Calls()))], {path: line.encode()}).line_and_marker(
        path, one, columns
    )
    assert frame is not None
    shown, below = (text.split(" | ", 1)[1] for text in frame)
    if mark is not None:
        assert (shown, below) == (code, mark)
    else:
        assert shown[below.index("^") : below.rindex("^") + 1] == name
        assert shown.startswith("...") and shown.endswith("...") and len(frame[0]) < (columns or 0)


@pytest.mark.parametrize("columns", [1, 20, 28, 40, 60, 80, 100])
def test_no_line_of_code_is_wider_than_the_terminal(columns: int, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "a.py")
    for place in range(1, len(LONG) + 1):
        one = Diagnostic(1, place, "NPU101", FINDING, "")
        frame = SourceLines([(path, FileResult(None, (one,), Calls()))], {path: LONG.encode()}).line_and_marker(
            path, one, columns
        )
        assert frame is not None and "^" in frame[1]
        assert all(len(text) <= max(columns, 28) for text in frame), (place, frame)


def test_a_place_without_code_has_no_frame(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "gone.py")
    for one in (Diagnostic(3, 1, "NPU101", FINDING, ""), Diagnostic(0, 0, "NPU101", FINDING, "")):
        assert SourceLines([(path, FileResult(None, (one,), Calls()))]).line_and_marker(path, one, 80) is None


def test_names_cannot_steer_the_terminal(project: pathlib.Path, capsys: Any) -> None:
    (project / "a.py").rename(project / "a\x1b[2J\nb.py")
    assert main(["-i", str(project), "--check"]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out and "a\\x1b[2J\\nb.py:4:1: NPU101" in out


@pytest.mark.parametrize(
    "text, shown", [("a\nb", "a\\nb"), ("\x07\x9b", "\\x07\\x9b"), ("\u00fc \u6587", "\u00fc \u6587")]
)
def test_control_characters_are_escapes(text: str, shown: str) -> None:
    assert printable_text(text) == shown


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
            [result(CHANGE, CHANGE), result(FINDING), failed_result("no")],
            "3 Python files, 1 changed, 1 unreadable; 2 rewrites, 1 place needs a manual change.",
        ),
        (
            [failed_result("no"), failed_result("no")],
            "2 Python files, 0 changed, 2 unreadable; 0 rewrites, 0 places need a manual change.",
        ),
    ],
    ids=["none", "one", "each", "none readable"],
)
def test_one_sentence_counts_the_files(results: list[FileResult], sentence: str) -> None:
    assert summary_sentences([("a.py", one) for one in results])[1] == sentence


def test_statistics_count_the_findings_of_each_rule() -> None:
    found = list(statistics_lines([("a", result(CHANGE, FINDING, CHANGE)), ("b", failed_result("no"))], Registry()))
    assert [re.sub(" +", " ", line) for line in found] == [
        " 3 NPU101 Give every session the NPU configuration (2 rewritten, 1 not converted)",
        " 1 NPU000 Unreadable files",
    ]
