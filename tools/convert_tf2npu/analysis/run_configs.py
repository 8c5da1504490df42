"""The kind of a run configuration after all rules, and the Estimators that accept it."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.call_sites import values_passed_to_parameter
from ..semantics.model import Where
from ..semantics.module_index import AnyType, Names
from ..semantics.scopes import own_returns
from ..semantics.signatures import NPU_RUN_CONFIG as NPU_ARGUMENTS, RUN_CONFIG, bind_arguments
from ..semantics.tf_types import Type
from ..syntax.expressions import is_none
from .strategies import converted_arguments

_RUN_CONFIG = "tensorflow.estimator.RunConfig"


def arguments_without_effect(context: Context, call: ast.Call, where: Where) -> set[str]:
    """Return the arguments of a RunConfig without effect on an NPU, except None and NPU strategies."""
    bound = bind_arguments(call, RUN_CONFIG)
    return {
        name for name, value in bound.args.items() if name not in NPU_ARGUMENTS and not is_none(value)
    } - converted_arguments(context, call, where)


def type_after_conversion(context: Context, node: ast.AST | None, where: Where) -> AnyType | None:
    """Return the kind of run configuration that an expression becomes.

    Returns:
        ``Type.NPU_RUN_CONFIG``, ``Type.PREPARED_RUN_CONFIG`` (by ``npu_run_config_init``), or None for any other one.
    """
    return _single_type(_possible_types(context, node, where, set()))


def _possible_types(context: Context, node: ast.AST | None, where: Where, seen: set[int]) -> set[AnyType | None]:
    """Return the kinds that an expression may have; none for an expression that is being checked already."""
    if id(node) in seen:
        return set()
    seen.add(id(node))
    if isinstance(node, ast.IfExp):
        return _possible_types(context, node.body, where, seen) | _possible_types(context, node.orelse, where, seen)
    if isinstance(node, ast.Name):
        values = _all_possible_values(context.names, node.id, where)
        if values:
            return {kind for value, place in values for kind in _possible_types(context, value, place, seen)}
    if isinstance(node, ast.Call):
        if context.resolve(node.func, where) == _RUN_CONFIG:
            bound = bind_arguments(node, RUN_CONFIG)
            if bound.hidden or bound.unknown:
                return {None}
            return {Type.PREPARED_RUN_CONFIG if arguments_without_effect(context, node, where) else Type.NPU_RUN_CONFIG}
        if isinstance(node.func, ast.Attribute) and node.func.attr == "replace":
            return _possible_types(context, node.func.value, where, seen)
        function = context.names.function_definition(node.func, where)
        if function and function.names is context.names:
            return {
                k
                for r in own_returns(function.node)
                for k in _possible_types(context, r.value, context.names.places[r], seen)
            }
    kind = context.types.type_of(node, where)
    return {kind if kind in (Type.NPU_RUN_CONFIG, Type.PREPARED_RUN_CONFIG) else None}


def _all_possible_values(names: Names, name: str, where: Where) -> list[tuple[ast.AST | None, Where]]:
    """Return what a name may hold, also what the calls in the file pass to a parameter; nothing if that is not all."""
    values: list[tuple[ast.AST | None, Where]] = []
    for binding in names.bindings_of_name(name, where) or ():
        passed = values_passed_to_parameter(binding, names) if binding.kind == "arg" else None
        if binding.kind == "value":
            values.append((binding.node, binding.where))
        elif passed and all(value.names is names for value in passed):
            values += [(value.value, value.where) for value in passed]
        else:
            return []
    return values


def _single_type(kinds: set[AnyType | None]) -> AnyType | None:
    return kinds.pop() if len(kinds) == 1 else None
