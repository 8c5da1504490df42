"""Iterators over datasets whose elements training steps read."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..semantics.model import Where
from ..semantics.module_index import Names
from ..semantics.value_flow import Origin, origins
from ..syntax.expressions import values_of
from .datasets import is_dataset

_NEXT = frozenset({"get_next", "next"})


class Read(NamedTuple):
    """A call that takes the next element of an iterator: the call, the iterator, its place."""

    call: ast.Call
    iterator: ast.expr
    where: Where


def reads_of_batches(names: Names, steps: list[ast.Call]) -> Iterator[Read]:
    """Yield the calls that take what some training steps get, in their arguments or before them."""
    for step in steps:
        where = names.place(step)
        for value in values_of(step):
            for node in ast.walk(value):
                yield from _read_of_iterator(node, where)
                bindings = names.bindings_of_name(node.id, where) or () if isinstance(node, ast.Name) else ()
                for binding in bindings:
                    if binding.kind in ("value", "part") and binding.node is not None:
                        for inner in ast.walk(binding.node):
                            yield from _read_of_iterator(inner, binding.where)


def _read_of_iterator(node: ast.AST, where: Where) -> Iterator[Read]:
    if not isinstance(node, ast.Call):
        return
    function = node.func
    if isinstance(function, ast.Name) and function.id == "next" and node.args:
        yield Read(node, node.args[0], where)
    elif isinstance(function, ast.Attribute) and function.attr in _NEXT and not node.args:
        yield Read(node, function.value, where)


def argument_of_iter(node: ast.AST) -> ast.expr | None:
    """Return x of ``iter(x)``; None for another expression."""
    is_iter = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "iter"
    return node.args[0] if isinstance(node, ast.Call) and is_iter and len(node.args) == 1 else None


def is_iterator(node: ast.expr, where: Where, names: Names) -> bool:
    """Return True if an expression is an iterator over a dataset wherever it comes from."""
    sources = origins(node, where, names, follows_methods=True)
    return bool(sources) and all(_is_iter_of_dataset(origin) for origin in sources)


def _is_iter_of_dataset(origin: Origin) -> bool:
    inner = argument_of_iter(origin.node)
    return inner is not None and is_dataset(inner, origin.where, origin.names)
