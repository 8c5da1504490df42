"""Decide if an expression is a tensor, and if its value depends on the data, so that no compiler knows it.

Shapes are not dynamic here: if the input has a static shape, ``tf.shape(x)[0]`` is folded to a constant.
"""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.module_index import Names
from ..semantics.tf_types import Type
from ..semantics.value_flow import origins
from ..syntax.expressions import last_part
from .tf_functions import enclosing_functions

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
_MATHS = ("tensorflow.reduce_", "tensorflow.math.", "tensorflow.nn.", "tensorflow.keras.losses.")
_LOSSES = ("tensorflow.keras.losses.", "tensorflow.keras.metrics.")
_TENSORS = frozenset(
    "tensorflow." + name
    for name in """abs add_n argmax argmin clip_by_norm clip_by_value concat convert_to_tensor einsum equal exp gather
maximum minimum norm ones ones_like pow round sigmoid sqrt square squeeze stack stop_gradient tanh tensordot transpose
where zeros zeros_like matmul cast one_hot expand_dims reshape""".split()
)
_SEVERAL = frozenset({"moments", "sufficient_statistics", "top_k", "weighted_moments"})  # or none


def is_tensor(context: Context, node: ast.AST, where: Where) -> bool:
    """Return True if an expression certainly is a tensor: what ``tape.gradient`` takes, or the result of TensorFlow."""
    return _is_gradient_target(context, node) or _is_tensor(context, node, where, 0)


def _is_gradient_target(context: Context, node: ast.AST) -> bool:
    """Return True for ``loss`` in a function with ``tape.gradient(loss, variables)``."""
    functions = context.names.once(_functions_by_target).get(node.id) if isinstance(node, ast.Name) else None
    return functions is not None and not functions.isdisjoint(enclosing_functions(context.names, node)[:1])


def _functions_by_target(names: Names) -> dict[str, set[ast.FunctionDef]]:
    """Return the functions with ``tape.gradient(loss, variables)`` by ``loss``."""
    functions: dict[str, set[ast.FunctionDef]] = {}
    for call in names.calls:
        if getattr(call.node.func, "attr", "") == "gradient" and call.node.args:
            target = call.node.args[0]
            if isinstance(target, ast.Name):
                functions.setdefault(target.id, set()).update(enclosing_functions(names, call.node))
    return functions


def _is_tensor(context: Context, node: ast.AST, where: Where, depth: int) -> bool:
    if depth > 20:
        return False
    if isinstance(node, ast.Call):
        name = context.resolve(node.func, where) or ""
        if name in _TENSORS or name.startswith(_MATHS) and last_part(name)[:1].islower():
            return last_part(name) not in _SEVERAL
        if not name and context.types.type_of(node.func, where) == Type.MODEL:
            return True
        return any(
            isinstance(origin.node, ast.Call) and (origin.resolve() or "").startswith(_LOSSES)
            for origin in (origins(node.func, where, context.names) if not name else ())
        )
    if isinstance(node, ast.BinOp):
        return any(_is_tensor(context, side, where, depth + 1) for side in (node.left, node.right))
    if isinstance(node, (ast.Subscript, ast.UnaryOp)):
        part = node.value if isinstance(node, ast.Subscript) else node.operand
        return _is_tensor(context, part, where, depth + 1)
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, where) or []
        return bool(bindings) and all(
            b.kind == "value" and b.node is not None and _is_tensor(context, b.node, b.where, depth + 1)
            for b in bindings
        )
    return False


def is_computed_from_fed_data(context: Context, node: ast.AST | None, where: Where, depth: int = 0) -> bool:
    """Return True if an expression is certainly computed from data that is fed to the graph."""
    if depth > 20:
        return False
    if isinstance(node, ast.Call):
        name = context.resolve(node.func, where)
        return (
            name in _FROM_DATA
            or name in _OF_ARGUMENTS
            and any(is_computed_from_fed_data(context, argument, where, depth + 1) for argument in node.args)
        )
    if isinstance(node, ast.BinOp):
        return is_computed_from_fed_data(context, node.left, where, depth + 1) or is_computed_from_fed_data(
            context, node.right, where, depth + 1
        )
    if isinstance(node, ast.Subscript):
        return is_computed_from_fed_data(context, node.value, where, depth + 1)
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, where) or []
        return bool(bindings) and all(
            b.kind == "value" and is_computed_from_fed_data(context, b.node, b.where, depth + 1) for b in bindings
        )
    return False
