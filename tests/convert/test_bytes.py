"""Text without an edit keeps every byte."""

from __future__ import annotations

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.syntax.source import Edit, Source, SourceError

BEFORE = """import tensorflow as tf  # the library

def f(x):
{tab}# a comment
{tab}return tf.Session()  # caf\xe9
"""
AFTER = """import tensorflow as tf  # the library
from npu_shim.npu_init import *

def f(x):
{tab}# a comment
{tab}return tf.Session(config=npu_config_proto())  # caf\xe9
"""


def converted(raw: bytes) -> bytes:
    result = Converter().convert(raw)
    assert result.new is not None, result.diagnostics
    return result.new


@pytest.mark.parametrize("tab", ["    ", "\t", "  "], ids=["spaces", "tabs", "two spaces"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize(
    "encoding,head",
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("latin-1", "# -*- coding: latin-1 -*-\n"),
        ("cp1252", "#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\n"),
    ],
    ids=["UTF-8", "byte order mark", "latin-1 cookie", "cookie in the second line"],
)
def test_encodings_line_ends_and_tabs_survive(encoding: str, head: str, newline: str, tab: str) -> None:
    def raw(text: str) -> bytes:
        return (head + text.format(tab=tab)).replace("\n", newline).encode(encoding)

    assert converted(raw(BEFORE)) == raw(AFTER)


def test_a_form_feed_and_a_continuation_survive() -> None:
    raw = b"import tensorflow as tf\n\x0c\nsess = \\\n    tf.Session(\n    )\n"
    assert converted(raw) == (
        b"import tensorflow as tf\nfrom npu_shim.npu_init import *\n\x0c\n"
        b"sess = \\\n    tf.Session(config=npu_config_proto()\n    )\n"
    )


def test_wide_characters_before_an_edit_do_not_shift_it() -> None:
    raw = 'import tensorflow as tf\nx = "\u4e2d\u6587\U0001f600", tf.Session(), "\u4e2d"\n'.encode("utf-8")
    assert 'tf.Session(config=npu_config_proto()), "\u4e2d"' in converted(raw).decode("utf-8")


def test_a_file_without_a_line_end_at_its_end() -> None:
    assert converted(b"import tensorflow as tf\ntf.Session()") == (
        b"import tensorflow as tf\nfrom npu_shim.npu_init import *\ntf.Session(config=npu_config_proto())"
    )


def test_an_import_that_shares_its_line_is_followed_on_that_line() -> None:
    assert converted(b"import tensorflow as tf; tf.Session()") == (
        b"import tensorflow as tf; from npu_shim.npu_init import *; tf.Session(config=npu_config_proto())"
    )


@pytest.mark.parametrize(
    "raw,line,col,words",
    [
        (b'x = 1\nprint "a"\n', 2, None, "Python 2"),
        (b"try:\n    pass\nexcept A, e:\n    pass\n", 3, None, "Python 2"),
        (b'x = 1\ny = "\xe9"\n', 2, 6, "declare the encoding"),
        (b"# coding: nonsense\n", 1, 1, "nonsense"),
        (b'x = 1\ny = "\x00"\n', 2, 6, "NUL"),
        (b"(" * 5000 + b")" * 5000, None, None, ""),
    ],
    ids=["Python 2 print", "Python 2 except", "not UTF-8", "unknown encoding", "NUL", "very deep"],
)
def test_unreadable_files_are_named_with_their_place(raw, line, col, words) -> None:
    result = Converter().convert(raw)
    assert result.new is None and result.unreadable and len(result.diagnostics) == 1
    said = result.diagnostics[0]
    assert words in said.message
    assert line is None or said.line == line
    assert col is None or said.col == col


def test_a_very_long_chain_is_converted_or_named_and_ends_nothing() -> None:
    raw = b"import tensorflow as tf\nx = " + b" + ".join([b"1"] * 3000) + b"\ntf.Session()\n"
    result = Converter().convert(raw)
    assert result.unreadable or b"npu_config_proto" in (result.new or b"")


def test_edits_that_meet_at_one_place_nest() -> None:
    source = Source(b"f(x)")
    outer = [Edit(2, 2, "a("), Edit(3, 3, ")", closing=True)]
    inner = [Edit(2, 2, "b("), Edit(3, 3, "]", closing=True)]
    assert source.bytes_with_edits(outer + inner) == b"f(a(b(x]))"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        Source(b"abcdef").bytes_with_edits([Edit(0, 3, ""), Edit(2, 4, "")])


def test_text_that_the_encoding_lacks_is_an_error_of_the_file() -> None:
    with pytest.raises(SourceError, match="coding"):
        Source(b'# coding: ascii\nx = "\xe9"\n')
