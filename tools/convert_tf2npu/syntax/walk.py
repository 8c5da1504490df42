"""A fast ``ast.walk`` that does not look at names, numbers and operators.

``ast.walk`` checks each field of each node for nodes. Most fields hold none, and the type of the node shows which ones
do.
"""

from __future__ import annotations

import ast
from typing import Dict, Tuple

# Fields that hold texts, numbers or flags, operators and contexts, and the names of an import.
_NO_NODES = frozenset(
    """id attr arg n s kind name names op ops ctx level module is_async simple asname type_comment
conversion rest kwd_attrs type_ignores tag""".split()
)
# Types of nodes without children. Python 3.7 has Num and the like; later versions warn when these are named.
LEAVES = frozenset(
    vars(ast)[name]
    for name in "Constant Num Str Bytes NameConstant Ellipsis MatchSingleton".split()
    if name in vars(ast)
)
_NAMED_BY_NODES = frozenset({"TypeAlias"})


class _Fields(Dict[type, Tuple[str, ...]]):
    """The fields that may hold nodes, in order, for each type of node."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        every: tuple[str, ...] = getattr(kind, "_fields", ())
        named = kind.__name__ in _NAMED_BY_NODES
        fields = () if kind in LEAVES else tuple(f for f in every if f not in _NO_NODES or named and f == "name")
        self[kind] = fields
        return fields


NODE_FIELDS = _Fields()


def walk_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it in the order of ``ast.walk``, without contexts, operators and names of
    imports."""
    nodes = [tree]
    for node in nodes:  # which grows meanwhile
        for field in NODE_FIELDS[type(node)]:
            child = getattr(node, field, None)
            if type(child) is list:
                nodes += [part for part in child if part is not None]
            elif child is not None:
                nodes.append(child)
    return nodes
