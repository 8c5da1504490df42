"""The text with which a run is observed: every block and expression is watched, and no line moves."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest
from convert_tf2npu.facts.seen import Place
from convert_tf2npu.rewrite.watching import RAN, SEEN, Watched
from convert_tf2npu.syntax.source import Source

SCRIPT = '''"""Doc."""
from __future__ import annotations
import math

def f(n):
    """Doc."""
    if n > 2:
        for i in 1, n:
            out.append(i)
    elif n: out.append(math.floor(n))
    else:
        try:
            with open(__file__) as stream, stream:
                while n: pass
        except OSError:
            out.append("none")
            return -1
        finally: out.append("end")
    return math.floor(
        n)

class C:
    size = f(3)
    def __g(self): return math.ceil(1.5)
'''


@pytest.fixture()
def numbers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Serve the functions of watched code. Return the numbers of what ran, and of what was seen with its values."""
    ran: set[int] = set()
    seen: list[tuple[int, object]] = []
    monkeypatch.setattr(builtins, RAN, ran.add, raising=False)
    monkeypatch.setattr(builtins, SEEN, lambda number, value: (seen.append((number, value)), value)[1], raising=False)
    return ran, seen


def watched_code(text: str, *names: str) -> tuple[Watched, str]:
    """Return the watched text in which the calls of some functions of math are asked for."""
    source, watched = Source(text.encode()), Watched()
    asked = []
    for name in names:
        start = text.index(f"math.{name}(")
        end = text.index(")", start) + 1
        asked.append((start, end, Place(*source.line_col(start), *source.line_col(end), "rows"), ""))
    return watched, source.bytes_with_edits(watched.edits("f.py", text.encode(), asked)).decode()


def test_the_script_computes_the_same_on_the_same_lines(numbers: Any) -> None:
    ran, seen = numbers
    watched, new = watched_code(SCRIPT, "floor", "ceil")
    assert new.count("\n") == SCRIPT.count("\n")
    space: dict[str, Any] = {"__file__": "/no/such/file", "out": [], "__name__": "f"}
    exec(compile(new, "f.py", "exec", dont_inherit=True), space)
    assert space["out"] == [1, 3]
    assert space["C"]()._C__g() == 2
    assert (space["f"](0), space["out"][2:]) == (-1, ["none", "end"])
    lines = {number: block.lines.first for number, block in enumerate(watched.blocks)}
    assert sorted(set(lines.values()) - {lines[number] for number in ran}) == [14]
    assert [(watched.places[number][1].line, value) for number, value in seen] == [(24, 2)]


LEFT = """
def f(n):
    if n == 1:
        return 1
    out.append(n)
    for i in 1, 2:
        if i == n: break
        out.append(i)
    return 2
out = []
if f(1) == 2: raise ValueError
def after(): pass
"""


def test_another_block_begins_after_a_branch_with_a_return_or_a_break(numbers: Any) -> None:
    watched, new = watched_code(LEFT)
    space: dict[str, Any] = {}
    exec(new, space)
    lines = [(1, 12), (3, 4), (4, 4), (5, 8), (7, 7), (8, 8), (9, 9), (12, 12)]
    assert [block.lines for block in watched.blocks] == lines
    assert numbers[0] == {0, 1, 2}
    space["f"](2)
    assert numbers[0] == {0, 1, 2, 3, 4, 5, 6}
    assert watched.blocks[3].beginning_until(5) == (5, 5) and watched.blocks[3].beginning_until(6) == (5, 8)


STOPPED = """
def batches():
    for i in 1, 2:
        yield i
    out.append("end")
def first():
    yield 1; out.append("second")
    out.append("third")
def wait(n):
    while n:
        n = n - 1 if n > 1 else int("x")
    out.append("done")
out = [next(batches()), next(first())]
try:
    wait(2)
except ValueError: pass
if len(out) > 9: out.append("many")
"""


def test_another_block_begins_after_a_loop_and_a_yield(numbers: Any) -> None:
    watched, new = watched_code(STOPPED)
    exec(new, {})
    lines_not_run = [block.lines for number, block in enumerate(watched.blocks) if number not in numbers[0]]
    assert lines_not_run == [(5, 5), (8, 8), (12, 12)]


def test_no_mark_stands_before_the_options_of_a_loop() -> None:
    text = "for i in r:\n    tf.autograph.experimental.set_loop_options(swap_memory=True)\n    i()\n"
    watched, new = watched_code(text)
    assert new.splitlines()[1:] == [text.splitlines()[1], f"    {RAN}(1); i()"]
    assert [tuple(block.lines) for block in watched.blocks] == [(1, 3), (2, 3)]


def test_a_body_on_the_line_of_its_condition_is_no_block() -> None:
    text = "x = 1\nif x > 9: y = 1\nelse: y = 2\nif (x and\n    x): y = 3\ndef f(): return 1\ndef g(x=f()): return 1\n"
    watched, _ = watched_code(text)
    assert [tuple(block.lines) for block in watched.blocks] == [(1, 7), (3, 3), (6, 6)]


def test_an_expression_of_several_lines_is_watched(numbers: Any) -> None:
    watched, new = watched_code("import math\nx = math.floor(\n  # a comment\n  2.5)\n", "floor")
    space: dict[str, Any] = {}
    exec(new, space)
    assert (space["x"], numbers[1]) == (2, [(0, 2)])
    assert watched.places[0][1] == Place(2, 5, 4, 7, "rows")


if sys.version_info >= (3, 10):  # which has match

    def test_cases_are_blocks(numbers: Any) -> None:
        text = "def f(x):\n    match x:\n        case 1:\n            y = 1\n        case _:\n            y = 2\n    return y\n"
        watched, new = watched_code(text)
        space: dict[str, Any] = {}
        exec(new, space)
        assert space["f"](1) == 1
        assert [block.lines.first for number, block in enumerate(watched.blocks) if number not in numbers[0]] == [6]
