"""The parts of a syntax tree that are nodes themselves, found without looking at its names, numbers and operators.

``ast.walk`` asks of each field of each node what it holds; most hold no node, and which do is known by the node's type.
"""

from __future__ import annotations

import ast
from typing import Dict, Tuple

# Fields that hold texts, numbers or flags, operators and contexts, and the names of an import.
_NO_NODES = frozenset(
    """id attr arg n s kind name names op ops ctx level module is_async simple asname type_comment
conversion rest kwd_attrs type_ignores tag""".split()
)
# Types of which a node has no others in it; Python 3.7 has Num and its like, to ask for which is to be warned later.
LEAVES = frozenset(
    vars(ast)[name]
    for name in "Constant Num Str Bytes NameConstant Ellipsis MatchSingleton".split()
    if name in vars(ast)
)
_NAMED_BY_NODES = frozenset({"TypeAlias"})


class _Fields(Dict[type, Tuple[str, ...]]):
    """For each type of node the fields that may hold nodes, in order."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        every: tuple[str, ...] = getattr(kind, "_fields", ())
        named = kind.__name__ in _NAMED_BY_NODES
        found = () if kind in LEAVES else tuple(f for f in every if f not in _NO_NODES or named and f == "name")
        self[kind] = found
        return found


NODE_FIELDS = _Fields()


def walked(tree: ast.AST) -> list[ast.AST]:
    """A node and all below it, in the order of ``ast.walk``; contexts, operators and names of imports left out."""
    found = [tree]
    for node in found:  # which grows meanwhile
        for field in NODE_FIELDS[type(node)]:
            child = getattr(node, field, None)
            if type(child) is list:
                found += [each for each in child if each is not None]
            elif child is not None:
                found.append(child)
    return found
