"""The values that a file feeds to its placeholders, by the names that these are assigned to."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..syntax.expressions import last_name


def fed_values(context: Context, placeholder: ast.AST) -> list[ast.expr]:
    """Return the values that the file feeds to a placeholder: of a dictionary, or assigned to a key of one.

    Args:
        context: the file.
        placeholder: the call that makes it.
    """
    parent = context.names.parents.get(placeholder)
    targets = parent.targets if isinstance(parent, ast.Assign) else ()
    return [value for target in targets for value in context.once(_values_by_name).get(last_name(target), ())]


def _values_by_name(context: Context) -> dict[str, list[ast.expr]]:
    """Return the values of dictionaries by the last names of their keys."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(context.names.tree):
        pairs: list[tuple[ast.AST | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values))
        elif isinstance(node, ast.Assign):
            keys = [target.slice for target in node.targets if isinstance(target, ast.Subscript)]
            pairs = [(_without_index(key), node.value) for key in keys]
        for key, value in pairs:
            if isinstance(key, (ast.Name, ast.Attribute)):
                values.setdefault(last_name(key), []).append(value)
    return values


def _without_index(key: ast.AST) -> ast.AST:
    """Return the expression in the brackets of a subscript, which Python 3.8 wraps."""
    return key.value if type(key).__name__ == "Index" else key  # type: ignore[attr-defined]
