"""Statements and arguments are taken out without a trace, and nothing else with them."""

from __future__ import annotations

import ast

import pytest
from convert_tf2npu.project.project import Project
from convert_tf2npu.rewrite.call_edits import loses_comment
from convert_tf2npu.rewrite.removal import remove_arguments, remove_statements
from convert_tf2npu.semantics.resolver import Resolver
from convert_tf2npu.syntax.source import Source

STATEMENTS: dict[str, tuple[str, str]] = {
    "in a line of its own": ("a\ngone\nb\n", "a\nb\n"),
    "with a semicolon": ("a\ngone ; \nb\n", "a\nb\n"),
    "before another one": ("gone ;  b\n", "b\n"),
    "behind another one": ("a ; gone\nb\n", "a\nb\n"),
    "between two": ("a; gone; b\n", "a; b\n"),
    "with a comment": ("gone  # why\nb\n", "# why\nb\n"),
    "with a comment to a linter": ("gone  # pylint: disable=unused-import\nb\n", "b\n"),
    "with a comment to a linter and one to people": ("gone  # noqa  # why\n", "# noqa  # why\n"),
    "with a comment about a type": ("gone  # type of the data\n", "# type of the data\n"),
    "behind another one, with a comment to a linter": ("a; gone  # noqa: E702\n", "a  # noqa: E702\n"),
    "behind another one, with a comment": ("a; gone  # why\n", "a  # why\n"),
    "in a block with others": ("if x:\n    gone\n    b\n", "if x:\n    b\n"),
    "all of a block": ("if x:\n    gone\n    gone\nb\n", "if x:\n    pass\nb\n"),
    "all of a block in one line": ("if x: gone\nb\n", "if x: pass\nb\n"),
    "the first of a block in one line": ("if x: gone; b\n", "if x: pass; b\n"),
    "at the end, without a line end": ("a\ngone", "a\n"),
    "continued": ("gone \\\n\nb\n", "b\n"),
    "all of a file": ("gone\n", ""),
}


@pytest.mark.parametrize("before,after", list(STATEMENTS.values()), ids=list(STATEMENTS))
def test_a_statement(before: str, after: str) -> None:
    source = Source(before.encode())
    gone = [n for n in ast.walk(source.tree) if isinstance(n, ast.Expr) and getattr(n.value, "id", "") == "gone"]
    new = source.bytes_with_edits(remove_statements(source, Resolver(source.tree, Project()), gone)).decode()
    assert new == after
    ast.parse(new)


GONE = ast.dump(ast.parse("gone", mode="eval").body)
ARGUMENTS: dict[str, tuple[str, str]] = {
    "the first": ("f(x=1, b=2)\n", "f(b=2)\n"),
    "the last": ("f(a, b=2, x=1)\n", "f(a, b=2)\n"),
    "the last, with a comma behind": ("f(a,\n  x=1,\n)\n", "f(a,\n)\n"),
    "all": ("f(x=1, y=2)\n", "f()\n"),
    "all, with a comma behind": ("f( x=1, )\n", "f(  )\n"),
    "two apart": ("f(x=1, b=2, y=3, c=4)\n", "f(b=2, c=4)\n"),
    "two together in the end": ("f(a, x=(1), y=(2,))\n", "f(a)\n"),
    "in lines": ("f(\n    x=1,\n    b=2,\n    y=(\n        3))\n", "f(\n    b=2)\n"),
    "behind one in parentheses": ("f((a), x=1)\n", "f((a))\n"),
    "without a name": ("f(gone, 1)\n", "f(1)\n"),
    "without a name, in parentheses": ("(f)((gone) , *a, x=1)\n", "(f)(*a)\n"),
    "behind a comment": ("f(a,  # a\n  b=2, x=1)\n", "f(a,  # a\n  b=2)\n"),
    "behind a comment of their own": ("f(b=2,\n  # why\n  x=1)\n", "f(b=2,\n  # why\n  )\n"),
    "behind a comment of their own, with a comma behind": ("f(b=2,  # why\n  x=1,)\n", "f(b=2,  # why\n  )\n"),
    "all, before a comment": ("f(x=1,  # why\n  )\n", "f(  # why\n  )\n"),
    "all, with a comma behind a comment": ("f(x=1  # why\n  , )\n", "f(  # why\n   )\n"),
    "beside a comment in another name": ("f(b  # b\n  =2, x=1)\n", "f(b  # b\n  =2)\n"),
}


@pytest.mark.parametrize("before,after", list(ARGUMENTS.values()), ids=list(ARGUMENTS))
def test_arguments(before: str, after: str) -> None:
    source = Source(before.encode())
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call))
    gone = [k.value for k in call.keywords if k.arg in ("x", "y")] + [a for a in call.args if ast.dump(a) == GONE]
    assert source.bytes_with_edits(remove_arguments(source, call, gone)).decode() == after


@pytest.mark.parametrize("text", ["f(x=1,  # why\n  b=2)\n", "f(b=2, x=1,  # why\n  y=1)\n"])
def test_a_comment_in_the_way_is_not_lost(text: str) -> None:
    source = Source(text.encode())
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call))
    assert loses_comment(
        source, remove_arguments(source, call, [k.value for k in call.keywords if k.arg in ("x", "y")])
    )
