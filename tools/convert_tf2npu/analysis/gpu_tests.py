"""Tests that ask if there is a GPU: ``tf.test.is_gpu_available()``, ``if gpus:``."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Where
from ..syntax.expressions import boxed_constant, constant_or, values_of

_NAME = "tensorflow.test.gpu_device_name"
_TESTS = frozenset(
    {
        _NAME,
        *(
            "tensorflow.test." + name
            for name in ("is_gpu_available", "is_built_with_cuda", "is_built_with_gpu_support")
        ),
    }
)
_LISTS = frozenset(
    f"tensorflow.config.{home}{name}"
    for home in ("", "experimental.")
    for name in ("list_physical_devices", "list_logical_devices", "get_visible_devices")
)
ASKING = _TESTS | _LISTS


def is_test_for_gpu(context: Context, test: ast.expr, where: Where) -> bool:
    """Return True if a test is true with one GPU or more, and false without."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_test_for_missing_gpu(context, test.operand, where)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        limit = constant_or(test.comparators[0], None)
        return _is_number_of_gpus(context, test.left, where) and (
            isinstance(test.ops[0], (ast.Gt, ast.NotEq))
            and limit == 0
            or isinstance(test.ops[0], ast.GtE)
            and limit == 1
        )
    return (
        is_list_of_gpus(context, test, where)
        or _is_number_of_gpus(context, test, where)
        or _is_result_of(context, test, where, _TESTS)
    )


def is_test_for_missing_gpu(context: Context, test: ast.expr, where: Where) -> bool:
    """Return True if a test is true without GPUs, and false with one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_test_for_gpu(context, test.operand, where)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        limit, operator = constant_or(test.comparators[0], None), test.ops[0]
        if isinstance(operator, ast.NotEq) and isinstance(limit, str):  # gpu_device_name() != '/device:GPU:0'
            return "GPU" in limit and _is_result_of(context, test.left, where, frozenset({_NAME}))
        return _is_number_of_gpus(context, test.left, where) and (
            isinstance(operator, ast.Eq) and limit == 0 or isinstance(operator, ast.Lt) and limit == 1
        )
    return False


def is_list_of_gpus(context: Context, node: ast.AST, where: Where) -> bool:
    """Return True if an expression is the list of GPUs."""
    return _is_result_of(context, node, where, _LISTS)


def _is_number_of_gpus(context: Context, node: ast.expr, where: Where) -> bool:
    """Return True if an expression is the number of GPUs."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in ("len", "bool"):
        return False
    return len(node.args) == 1 and is_list_of_gpus(context, node.args[0], where)


def _is_result_of(context: Context, node: ast.AST, where: Where, calls: frozenset[str]) -> bool:
    """Return True if an expression is the result of one of some calls, which list devices of the kind GPU."""
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, where) or []
        return bool(bindings) and all(
            b.kind == "value" and b.node is not None and _is_result_of(context, b.node, b.where, calls)
            for b in bindings
        )
    name = context.resolve(node.func, where) if isinstance(node, ast.Call) else None
    if name not in calls or not isinstance(node, ast.Call):
        return False
    given = values_of(node)
    return name in _TESTS or len(given) == 1 and boxed_constant(given[0]) == ("GPU",)
