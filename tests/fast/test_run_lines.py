"""Migrated code keeps the positions of the original, for the examples of every rule and several file formats."""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import Any, Iterator

import pytest
from convert_tf2npu.api import text_of

from npu_shim.import_hook.migrated_code import Migrated
from tests.convert.test_rules import CONVERTER, WITH, pairs

WRITTEN = {
    "as it is": lambda text: text,
    "with CRLF": lambda text: text.replace("\n", "\r\n"),
    "behind letters beyond ASCII": lambda text: "# größer\n" + text.replace("\n", "  # ä€😀\n"),
    "without a last line end": lambda text: text.rstrip("\n"),
}


def codes(code: CodeType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], CodeType]]:
    yield path, code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner, path + (inner.co_name,))


def first_lines(code: CodeType) -> dict[tuple[str, ...], list[int]]:
    """Return the first line of each function and class, by name."""
    found: dict[tuple[str, ...], list[int]] = {}
    for path, inner in codes(code):
        found.setdefault(path, []).append(inner.co_firstlineno)
    return found


def converted(code: str, text: str) -> tuple[Any, Migrated]:
    result = WITH.get(code, CONVERTER).convert(text.encode("utf-8"))
    return result, Migrated(text_of(text.encode("utf-8")), result.edits)


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("title, code, before, after", [pytest.param(*p, id=p[0]) for p in pairs()])
def test_functions_and_code_keep_their_lines(title: str, code: str, before: str, after: str, how: str) -> None:
    text = WRITTEN[how](before)
    result, migrated = converted(code, text)
    if result.new is None:  # a comment on each line may be what a rule keeps its hands off
        assert how == "behind letters beyond ASCII"
        return
    assert migrated.text == result.new.decode("utf-8")
    was, now = compile(text, "x.py", "exec", dont_inherit=True), migrated.compile_text("x.py")
    starts = first_lines(now)
    for path, lines in first_lines(was).items():
        if path in starts and len(starts[path]) == len(lines):
            assert starts[path] == lines, path
    count = len(text.splitlines())
    for _, inner in codes(now):
        assert all(1 <= line <= count for _, line in dis.findlinestarts(inner) if line)


@pytest.mark.parametrize("how", WRITTEN)
def test_unchanged_code_keeps_its_columns(how: str) -> None:
    """From Python 3.11 on code knows them, and tracebacks point at them."""
    text = WRITTEN[how](
        "import tensorflow as tf\n\n\ndef f(a, b):\n    with tf.Session() as session:\n"
        '        return session.run(a[b]["äö"] +\n            tf.nn.dropout(a, 0.5)), a.b.c\n'
    )
    result, migrated = converted("NPU101", text)
    assert result.new is not None

    def places(code: CodeType, name: str) -> list[Any]:
        if sys.version_info < (3, 11):
            return [line for _, line in dis.findlinestarts(code)]
        return [instruction.positions for instruction in dis.get_instructions(code) if instruction.argval == name]

    was = dict(codes(compile(text, "x.py", "exec", dont_inherit=True)))["f",]
    now = dict(codes(migrated.compile_text("x.py")))["f",]
    for name in ("run", "c", "a", "äö") if sys.version_info >= (3, 11) else ("",):
        assert places(was, name) and set(places(was, name)) <= set(places(now, name)), name


def test_a_line_of_the_original_is_found_in_the_migrated_text() -> None:
    for _, code, before, _ in pairs():
        result, migrated = converted(code, before)
        new = migrated.text.splitlines()
        for number, line in enumerate(before.splitlines(), 1):
            if line.strip().startswith(("def ", "class ", "@")) and line in new:
                assert new[migrated.new_line(number) - 1] == line, (code, line)
