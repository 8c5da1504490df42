"""A script from standard input: what goes in comes out, migrated, byte for byte."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import convert_tf2npu
import pytest

pytestmark = pytest.mark.once

TOOLS = str(pathlib.Path(convert_tf2npu.__file__).parent.parent)
BEFORE = "import tensorflow as tf\nsess = tf.Session()  # caf\u00e9\n"
AFTER = (
    "import tensorflow as tf\nfrom npu_shim.npu_init import *\n"
    "sess = tf.Session(config=npu_config_proto())  # caf\u00e9\n"
)


def filtered(raw: bytes, folder: pathlib.Path, *more: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "convert_tf2npu.main", "-i", "-"] + list(more),
        input=raw,
        cwd=str(folder),
        capture_output=True,
        env=dict(os.environ, PYTHONPATH=TOOLS, **environment),
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize(
    "encoding,head",
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("latin-1", "# -*- coding: latin-1 -*-  \u00e9\n"),
        ("cp1252", "#!/bin/sh\n# vim: fileencoding=cp1252\n"),
    ],
    ids=["UTF-8", "byte order mark", "latin-1", "cp1252 in the second line"],
)
def test_encodings_and_line_ends_pass_through(encoding: str, head: str, newline: str, tmp_path: pathlib.Path) -> None:
    def raw(text: str) -> bytes:
        return (head + text).replace("\n", newline).encode(encoding)

    done = filtered(raw(BEFORE), tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, raw(AFTER))


@pytest.mark.parametrize(
    "raw,code",
    [
        (b"", 0),
        (b"\n", 0),
        (b"\xef\xbb\xbf", 0),
        (b"x = 1", 0),
        (b"#" * 3_000_000, 0),
        (b"\x00", 2),
        (b"\xff\xfe", 2),
        (b'x = "\xe9"\n', 2),
        (b'print "a"\n', 2),
        (b"# coding: nonsense\n", 2),
        (b"import tensorflow as tf\n" + b"(" * 300, 2),
        (b"import tensorflow as tf\n" + b"#" * 3_000_000, 2),
    ],
    ids=[
        "nothing",
        "an empty line",
        "a mark alone",
        "no line end",
        "large",
        "NUL",
        "UTF-16",
        "no UTF-8",
        "Python 2",
        "unknown encoding",
        "open brackets",
        "too large",
    ],
)
def test_text_without_changes_or_of_another_language_is_printed_unchanged(
    raw: bytes, code: int, tmp_path: pathlib.Path
) -> None:
    done = filtered(raw, tmp_path)
    assert (done.returncode, done.stdout) == (code, raw)
    assert b"Traceback" not in done.stderr and (b"<stdin>" in done.stderr) is (code == 2)


@pytest.mark.parametrize(
    "raw,code",
    [(BEFORE.encode(), 1), (AFTER.encode(), 0), (b"x = 1\n", 0), (b"x = (\n", 2)],
    ids=["to be changed", "migrated", "plain", "broken"],
)
def test_exit_codes_of_a_check(raw: bytes, code: int, tmp_path: pathlib.Path) -> None:
    done = filtered(raw, tmp_path, "--check")
    assert (done.returncode, done.stdout) == (code, b"")
