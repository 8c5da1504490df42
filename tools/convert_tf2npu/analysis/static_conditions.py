"""Decide if a condition is a Python value, so that ``a if condition else b`` may be written.

In a graph a tensor has no truth value: testing it with Python's ``if`` is an error. A value that the script itself
tests with ``if`` is no tensor.
"""

from __future__ import annotations

import ast
from typing import Iterator

from ..semantics.call_sites import values_passed_to_method, values_passed_to_parameter
from ..semantics.model import Binding, Where
from ..semantics.module_index import ClassDefinition, Instance, Names
from ..syntax.expressions import boxed_constant, dotted_name_of

_MODE_KEYS = ("tensorflow.estimator.ModeKeys.", "tensorflow.contrib.learn.ModeKeys.")
_FLAGS = ("tensorflow.app.flags.FLAGS.", "tensorflow.flags.FLAGS.", "absl.flags.FLAGS.")


def is_python_value(
    names: Names, node: ast.AST | None, where: Where, being_checked: frozenset[int] = frozenset()
) -> bool:
    """Return True if an expression is certainly a Python value and no tensor.

    Args:
        names: of the module.
        node: the condition.
        where: its place.
        being_checked: the parameters that are being checked.
    """
    if isinstance(node, ast.Compare):
        return any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops) or any(
            _is_string_or_mode_key(names, side, where) for side in [node.left] + node.comparators
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return True
    if isinstance(node, ast.BoolOp):  # all but the last are tested; the last may be the result
        return is_python_value(names, node.values[-1], where, being_checked)
    if isinstance(node, ast.Name):
        bindings = names.bindings_of_name(node.id, where) or []
        return bool(bindings) and all(_binds_python_values(names, b, node, being_checked) for b in bindings)
    if isinstance(node, ast.IfExp):
        return is_python_value(names, node.body, where, being_checked) and is_python_value(
            names, node.orelse, where, being_checked
        )
    if isinstance(node, ast.Attribute):
        return (
            (names.resolve(node, where) or "").startswith(_FLAGS)
            or _function_tests_value(where.scope.node, node)
            or _holds_python_values(names, node, where, being_checked)
        )
    if isinstance(node, ast.Call):
        return (
            isinstance(node.func, ast.Name)
            and node.func.id in ("bool", "isinstance", "hasattr")
            and names.bindings_of_name(node.func.id, where) is None
        )
    return boxed_constant(node) in ((True,), (False,))


def _is_string_or_mode_key(names: Names, side: ast.AST, where: Where) -> bool:
    value = boxed_constant(side)
    return value is not None and isinstance(value[0], str) or (names.resolve(side, where) or "").startswith(_MODE_KEYS)


def _binds_python_values(names: Names, binding: Binding, use: ast.Name | None, being_checked: frozenset[int]) -> bool:
    if binding.kind == "value":
        return is_python_value(names, binding.node, binding.where, being_checked)
    if binding.kind != "arg":
        return False
    key = id(binding.node)
    scope = binding.where.scope
    if (
        key in being_checked
        or use is not None
        and len(scope.bindings[use.id]) == 1
        and _function_tests_value(scope.node, use)
    ):
        return True
    values = values_passed_to_parameter(binding, names) or values_passed_to_method(binding, names)
    return values is not None and all(is_python_value(v.names, v.value, v.where, being_checked | {key}) for v in values)


def _holds_python_values(names: Names, node: ast.Attribute, where: Where, being_checked: frozenset[int]) -> bool:
    """Return True if all values that the project assigns to an attribute are Python values."""
    owner = names.owner_class(node.value, where)
    kind = names.types.type_of(node.value, where) if owner is None else None
    if isinstance(kind, Instance):
        owner = ClassDefinition(kind.owner, kind.names)
    held = owner[1].attribute_bindings(owner[0], node.attr) if owner else []
    return bool(held) and all(_binds_python_values(other, b, None, being_checked) for b, other in held)


def _function_tests_value(function: ast.AST, value: ast.expr) -> bool:
    """Return True if a function, whenever it runs, tests a value with Python's if before it can return."""
    wanted = dotted_name_of(value)
    body: list[ast.stmt] = getattr(function, "body", []) if isinstance(function, ast.FunctionDef) else []
    for statement in body:
        for tested in _expressions_tested_by(statement):
            if wanted is not None and dotted_name_of(tested) == wanted:
                return True
        if any(isinstance(n, (ast.Return, ast.Raise)) for n in ast.walk(statement)):
            return False
    return False


def _expressions_tested_by(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions that a statement certainly tests, without those in its blocks."""
    for _, field in ast.iter_fields(statement):
        for part in field if isinstance(field, list) else [field]:
            if isinstance(part, ast.expr):
                yield from _expressions_tested_within(part)
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        yield from _expressions_tested_first(statement.test)


def _expressions_tested_first(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _expressions_tested_first(test.operand)
    elif isinstance(test, ast.BoolOp):
        yield from _expressions_tested_first(test.values[0])
    else:
        yield test


def _expressions_tested_within(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions tested within an expression whenever it is evaluated."""
    certain: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.IfExp):
        certain = [node.test]
        yield from _expressions_tested_first(node.test)
    elif isinstance(node, ast.BoolOp):
        certain = [node.values[0]]
        yield from _expressions_tested_first(node.values[0])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _expressions_tested_first(node.operand)
    elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        certain = []
    for part in certain:
        yield from _expressions_tested_within(part)
