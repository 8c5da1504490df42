"""Small questions about one expression: its literal value, its elements, the last part of the name it spells.

And about one statement: if it is a literal, or the main guard.
"""

from __future__ import annotations

import ast


def boxed_constant(node: ast.AST | None) -> tuple | None:
    """Return the value of a literal in a 1-tuple, or None if the expression is no literal."""
    if isinstance(node, ast.Constant):
        return (node.value,)
    # Python 3.7 has a class for each kind of literal; later versions warn when one of these is named.
    kind = type(node).__name__
    if kind in ("NameConstant", "Num", "Str", "Bytes"):
        return (getattr(node, {"NameConstant": "value", "Num": "n"}.get(kind, "s")),)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = boxed_constant(node.operand)
        if value and isinstance(value[0], (int, float)):
            return (-value[0],)
    return None


def constant_or(node: ast.AST | None, default: object) -> object:
    """Return the value of a literal, or a default if the expression is no literal."""
    return (boxed_constant(node) or (default,))[0]


def is_none(node: ast.AST | None) -> bool:
    """Return True if an expression is the literal None."""
    return boxed_constant(node) == (None,)


def is_literal_statement(statement: ast.stmt) -> bool:
    """Return True if a statement is only a literal, such as a docstring."""
    return isinstance(statement, ast.Expr) and boxed_constant(statement.value) is not None


def is_main_guard(node: ast.AST) -> bool:
    """Return True if a statement is ``if __name__ == '__main__':``."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def last_name(node: ast.AST) -> str:
    """Return ``c`` of the expression ``a.b.c``, ``a`` of ``a``, and the empty string for every other expression."""
    name: str = getattr(node, "attr", getattr(node, "id", ""))
    return name


def dotted_name_of(node: ast.AST) -> str | None:
    """Return ``a.b.c`` of the expression ``a.b.c``, and None for every other expression than names and attributes."""
    if isinstance(node, ast.Attribute):
        base = dotted_name_of(node.value)
        return base and f"{base}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def last_part(dotted: str | None) -> str:
    """Return ``c`` of the dotted name ``a.b.c``."""
    return (dotted or "").rpartition(".")[2]


def index_of(node: ast.Subscript) -> ast.expr:
    """Return what stands in the brackets of a subscript; Python 3.8 and before wrap it."""
    index: ast.expr = node.slice
    return getattr(index, "value") if type(index).__name__ == "Index" else index


def indices_of(node: ast.Subscript) -> list[ast.AST]:
    """Return the index of each dimension in a subscript; Python 3.8 and before wrap each beside a slice."""
    index = index_of(node)
    wrapped: list[ast.AST] = getattr(index, "dims", [])
    parts = index.elts if isinstance(index, ast.Tuple) else [getattr(part, "value", part) for part in wrapped]
    return list(parts) or [index]


def values_of(call: ast.Call) -> list[ast.expr]:
    """Return the values of the arguments of a call, keyword arguments last."""
    return call.args + [keyword.value for keyword in call.keywords]


def tuple_element(node: ast.AST | None, part: str) -> ast.AST | None:
    """Return a part of a tuple by its position, as in ``1.0``; the whole for an empty position.

    None if the source has no such part.
    """
    for index in part.split(".") if part else ():
        if (
            not isinstance(node, (ast.Tuple, ast.List))
            or len(node.elts) <= int(index)
            or any(isinstance(e, ast.Starred) for e in node.elts)
        ):
            return None
        node = node.elts[int(index)]
    return node
