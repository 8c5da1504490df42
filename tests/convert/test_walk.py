"""The fast walk over a tree sees what ast.walk sees."""

from __future__ import annotations

import ast
import pathlib
import sys

import pytest
from convert_tf2npu.syntax.source import Source, SourceError
from convert_tf2npu.syntax.walk import walk_nodes

_LEFT_OUT = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.alias)
PATHS = (
    sorted(pathlib.Path(ast.__file__).parent.glob("*.py"))[::6]
    + sorted((pathlib.Path(ast.__file__).parent / "test").glob("test_[gpst]*.py"))[::9]
)
NEWER = {
    (3, 7): "async def f(a, *b, c=1, **d) -> int:\n    return [e async for e in a if await e]\n",
    (3, 8): 'def f(a, /, b=(c := 1)):\n    return f"{a!r:>{b}}"\n',
    (3, 10): 'match x:\n    case A(1, b=[c, *d]) | {"k": None, **e} if f: pass\n    case str() as g: pass\n',
    (3, 11): "try:\n    pass\nexcept* E as e:\n    pass\n",
    (3, 12): "type X[T: int] = list[T]\ndef f[T, *Ts](a: T): pass\n",
}


def same(text: str) -> None:
    tree = ast.parse(text)
    assert walk_nodes(tree) == [node for node in ast.walk(tree) if not isinstance(node, _LEFT_OUT)]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_in_the_standard_library(path: pathlib.Path) -> None:
    try:
        same(Source(path.read_bytes()).text)
    except SourceError:
        assert "bad" in path.name


@pytest.mark.parametrize("version", sorted(v for v in NEWER if v <= sys.version_info[:2]), ids=str)
def test_in_newer_syntax(version) -> None:
    same(NEWER[version])
