"""Decide if the value of an expression depends on the data, so that no compiler knows it.

Shapes are not dynamic here: if the input has a static shape, ``tf.shape(x)[0]`` is folded to a constant.
"""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Where

_FROM_DATA: frozenset[str] = frozenset(
    "tensorflow." + name
    for name in """
reduce_max reduce_min reduce_sum reduce_mean reduce_any reduce_all count_nonzero placeholder
math.reduce_max math.reduce_min math.reduce_sum math.reduce_mean math.count_nonzero
placeholder_with_default""".split()
)
_OF_ARGUMENTS: frozenset[str] = frozenset(
    "tensorflow." + name
    for name in """
cast to_int32 to_int64 to_float maximum minimum math.maximum math.minimum floor math.floor ceil
math.ceil round math.round multiply add subtract divide floordiv div truediv squeeze reshape
identity stop_gradient clip_by_value""".split()
)


def is_computed(context: Context, node: ast.AST | None, where: Where, depth: int = 0) -> bool:
    """Return True if an expression is certainly computed from data that is fed to the graph."""
    if depth > 20:
        return False
    if isinstance(node, ast.Call):
        name = context.resolve(node.func, where)
        return (
            name in _FROM_DATA
            or name in _OF_ARGUMENTS
            and any(is_computed(context, argument, where, depth + 1) for argument in node.args)
        )
    if isinstance(node, ast.BinOp):
        return is_computed(context, node.left, where, depth + 1) or is_computed(context, node.right, where, depth + 1)
    if isinstance(node, ast.Subscript):
        return is_computed(context, node.value, where, depth + 1)
    if isinstance(node, ast.Name):
        bindings = context.names.lookup(node.id, where) or []
        return bool(bindings) and all(
            b.kind == "value" and is_computed(context, b.node, b.where, depth + 1) for b in bindings
        )
    return False
