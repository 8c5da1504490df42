"""Expressions inside f-strings are converted where they can be placed, and told where not."""

from __future__ import annotations

import re
import sys

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.syntax.source import Source

pytestmark = pytest.mark.smoke

HEAD = "import tensorflow as tf\n"
ONE_LINE = 'x = 1; print(f"loss {tf.Session().run(x):.3f} and {tf.Session(config=c)!r:>10}")\n'
LINES = "print(f'''\n {tf.Session()} \u00e9 {tf.Session(config=c)}''')\n"


@pytest.mark.parametrize("text", [ONE_LINE, LINES], ids=["in one line", "over lines"])
def test_a_session_is_converted_or_reported(text: str) -> None:
    result = Converter(Settings(select=("NPU101",))).convert((HEAD + text).encode("utf-8"))
    assert not result.unreadable
    if result.new is None:
        assert sys.version_info < (3, 12)
        assert len(result.diagnostics) == 2
        assert all("inside an f-string" in d.message and d.line == 2 for d in result.diagnostics)
    else:
        new = result.new.decode("utf-8")
        assert new.count("npu_config_proto()") == new.count("npu_config_proto(config_proto=c)") == 1
        assert (
            new.replace("config=npu_config_proto()", "")
            .replace("npu_config_proto(config_proto=c)", "c")
            .replace("from npu_shim.npu_init import *\n", "")
            == HEAD + text
        )


def test_a_finding_inside_an_f_string_is_reported_at_the_f_string() -> None:
    text = HEAD + "y = f'''\n\n{tf.unique(x)} {tf.where(x)}'''\n"
    result = Converter().convert(text.encode())
    assert not result.unreadable and result.new is None
    assert {(d.line, d.col) for d in result.diagnostics} == {(2, 5)}


@pytest.mark.parametrize("text", ["x = f'{tf.Session(**a)} {m.compile()}'\n", 'x = f"{m.compile()}"\n'])
def test_code_that_an_f_string_cannot_hold_is_not_written_there(text: str) -> None:
    raw = (HEAD + "m = tf.keras.Sequential()\n" + text).encode()
    result = Converter(Settings(select=("NPU101", "NPU304"), distributed="tf_strategy")).convert(raw)
    assert result.new is None and not result.unreadable
    assert any(re.search("inside (an|this) f-string", d.message) and d.line == 3 for d in result.diagnostics)


def test_output_that_is_not_python_is_reported_as_an_error_of_the_tool(monkeypatch) -> None:
    monkeypatch.setattr(Source, "bytes_with_edits", lambda self, edits: b"(")
    result = Converter().convert((HEAD + "tf.Session()\n").encode())
    assert result.new is None
    assert "the tool itself fails on it" in result.diagnostics[0].message
