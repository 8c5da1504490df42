"""Nodes that certainly start where Python 3.7 says so."""

from __future__ import annotations

import ast
import sys

import pytest
from convert_tf2npu.syntax.py37.start_positions import starts_as_recorded
from convert_tf2npu.syntax.source import Source

# The name x is what the call in question begins with.
CERTAIN = {
    "a statement": "x.f(1)\n",
    "behind an assignment": "y = x.f(1)\n",
    "an argument": "g(x.f(1))\n",
    "an argument in a line of its own": "g(\n    x.f(1))\n",
    "an argument of a call of a call": "g()(x.f(1))\n",
    "an argument of what a list holds": "g[0](x.f(1))\n",
    "an element": "y = [a,\n     x[0].f(1)]\n",
    "behind a backslash": "y = \\\n    x.f(1)\n",
}
UNCERTAIN = {
    "in parentheses": "y = (x.f)(1)\n",
    "in parentheses behind a keyword": "assert(x.f)(1)\n",
    "in parentheses in a call": "g((x.f)(1))\n",
    "in parentheses in a line of its own": "y = (\n    x.f\n)(1)\n",
    "behind a comment that ends with a bracket": "y = [  # g(\n    x.f(1)]\n",
}


def _call(tree: ast.AST) -> ast.Call:
    (found,) = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and "id='x'" in ast.dump(n.func)]
    return found


@pytest.mark.parametrize("name", sorted({**CERTAIN, **UNCERTAIN}))
def test_a_name_in_no_parentheses_is_where_a_call_starts(name: str) -> None:
    text = {**CERTAIN, **UNCERTAIN}[name]
    assert starts_as_recorded(_call(ast.parse(text)), text, text.index("x")) == (name in CERTAIN)


@pytest.mark.parametrize("text", ['"a".join(b)\n', "[1].index(x)\n", "(lambda: 1)()\n", 'f"{y}".g()\n'], ids=repr)
def test_an_expression_that_begins_with_no_name_is_uncertain(text: str) -> None:
    (call,) = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
    assert not starts_as_recorded(call, text, 0)


@pytest.mark.parametrize("name", sorted({**CERTAIN, **UNCERTAIN}))
def test_places_are_those_of_the_first_characters(name: str) -> None:
    text = {**CERTAIN, **UNCERTAIN}[name]
    source = Source(text.encode("utf-8"))
    call = _call(source.tree)
    start = text.index("(x.f)" if "(x.f)" in text else "(\n" if "x.f\n" in text else "x")
    assert source.line_col_of_node(call) == source.line_col(start)
    assert hasattr(call, "end_lineno") == (sys.version_info >= (3, 8) or name in UNCERTAIN)  # it took no tokens
    assert source.start(call) == start
