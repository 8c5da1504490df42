"""Tests that ask if there is a GPU: ``tf.test.is_gpu_available()``, ``if gpus:``."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.value_flow import origins
from ..syntax.expressions import constant

_TESTS = frozenset(
    "tensorflow.test." + name
    for name in "is_gpu_available is_built_with_cuda is_built_with_gpu_support gpu_device_name".split()
)
_LISTS = frozenset(
    f"tensorflow.config.{home}{name}"
    for home in ("", "experimental.")
    for name in ("list_physical_devices", "list_logical_devices", "get_visible_devices")
)


def is_gpu_test(context: Context, test: ast.expr, where: Where) -> bool:
    """Return True if a test is true with a GPU and false without one."""
    if isinstance(test, ast.Name):
        found = origins(test, where, context.names)
        node, where = (found[0].node, found[0].where) if len(found) == 1 else (None, where)
        return isinstance(node, (ast.Call, ast.Compare)) and is_gpu_test(context, node, where)
    if isinstance(test, ast.BoolOp):
        return any(is_gpu_test(context, value, where) for value in test.values)
    if isinstance(test, ast.Compare):
        is_more = isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.NotEq))
        return len(test.ops) == 1 and is_more and is_gpu_test(context, test.left, where)
    if not isinstance(test, ast.Call):
        return False
    if isinstance(test.func, ast.Name) and test.func.id in ("len", "bool") and len(test.args) == 1:
        return is_gpu_test(context, test.args[0], where)
    name = context.resolve(test.func, where)
    given = test.args + [k.value for k in test.keywords]
    return name in _TESTS or name in _LISTS and len(given) == 1 and constant(given[0]) == ("GPU",)
