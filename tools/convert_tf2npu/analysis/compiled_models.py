"""Find objects of unknown type that are compiled as Keras models, also in other functions and files."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple, Tuple

from ..semantics.call_sites import values_passed_to_method, values_passed_to_parameter
from ..semantics.model import Binding, Where
from ..semantics.module_index import Names
from ..semantics.scopes import own_returns
from ..syntax.expressions import constant_or
from .optimizers import optimizer_role

_ARGUMENTS = frozenset({"loss", "optimizer"})
_NAMES = frozenset("adadelta adagrad adam adamax adamw ftrl lion nadam rmsprop sgd".split())  # of optimizers
_DEEPEST = 4  # functions that the object passes on its way
_Variable = Tuple[str, int]  # with the id of its scope, or an attribute with that of its class


class _Use(NamedTuple):
    """An argument of a call: its position, or its keyword."""

    call: ast.Call
    where: Where
    position: int
    keyword: str


def is_compiled(names: Names, model: ast.expr, where: Where, deepest: int = _DEEPEST) -> bool:
    """Return True if the project compiles what an expression holds as a Keras model.

    Args:
        names: of the module.
        model: a variable, an attribute or a call.
        where: its place.
        deepest: the number of functions to follow that get, pass or return the object.
    """
    if isinstance(model, ast.Call):
        maker = names.function_definition(model.func, where) if deepest else None
        return maker is not None and any(
            result.value is not None and is_compiled(maker.names, result.value, maker.names.places[result], deepest - 1)
            for result in own_returns(maker.node)
        )
    if not isinstance(model, (ast.Name, ast.Attribute)):
        return False
    if _is_compiled_in_module(names, _variable_key(names, model, where), deepest):
        return True
    return deepest > 0 and any(
        _is_bound_to_compiled_model(its_names, binding, deepest - 1)
        for binding, its_names in _bindings_of_model(names, model, where)
    )


def _is_compiled_in_module(names: Names, variable: _Variable, deepest: int) -> bool:
    """Return True if a module compiles what a variable holds, or passes it to a function that does."""
    if variable in names.once(_compiled_model_variables):
        return True
    return deepest > 0 and any(
        _is_compiled_in_module(its_names, parameter, deepest - 1)
        for use in names.once(_calls_passing_variables).get(variable, ())
        for parameter, its_names in _parameters_receiving_argument(names, use)
    )


def _is_bound_to_compiled_model(names: Names, binding: Binding, deepest: int) -> bool:
    """Return True if the object that a binding binds is compiled before."""
    if binding.kind == "value" and isinstance(binding.node, ast.expr):
        return is_compiled(names, binding.node, binding.where, deepest)
    values = values_passed_to_parameter(binding, names) if binding.kind == "arg" else None
    if values is None and binding.kind == "arg":
        values = values_passed_to_method(binding, names)
    return any(is_compiled(passed.names, passed.value, passed.where, deepest) for passed in values or ())


def _bindings_of_model(names: Names, model: ast.Name | ast.Attribute, where: Where) -> Iterator[tuple[Binding, Names]]:
    if isinstance(model, ast.Name):
        yield from ((binding, names) for binding in names.bindings_of_name(model.id, where) or ())
        return
    owner = names.owner_class(model.value, where)
    if owner is not None:
        yield from ((held.binding, held.names) for held in owner.names.attribute_bindings(owner.node, model.attr))


def _parameters_receiving_argument(names: Names, use: _Use) -> Iterator[tuple[_Variable, Names]]:
    """Yield the parameter of a function of the project that gets an argument."""
    defined = names.function_definition(use.call.func, use.where)
    if defined is None:
        return
    function, theirs = defined
    given = [arg.arg for arg in function.args.args]
    position = use.position + isinstance(theirs.parents.get(function), ast.ClassDef)  # self
    name = use.keyword or (given[position] if position < len(given) else "")
    for candidate in theirs.functions:
        if candidate.node is function and name in candidate.scope.bindings:
            yield (ast.dump(ast.Name(name, ast.Load())), id(candidate.scope)), theirs


def _calls_passing_variables(names: Names) -> dict[_Variable, list[_Use]]:
    """Return the calls that pass a variable or an attribute."""
    by_variable: dict[_Variable, list[_Use]] = {}
    for call in names.calls:
        for position, value in enumerate(call.node.args):
            if isinstance(value, (ast.Name, ast.Attribute)):
                use = _Use(call.node, call.where, position, "")
                by_variable.setdefault(_variable_key(names, value, call.where), []).append(use)
        for keyword in call.node.keywords:
            if keyword.arg and isinstance(keyword.value, (ast.Name, ast.Attribute)):
                use = _Use(call.node, call.where, -1, keyword.arg)
                by_variable.setdefault(_variable_key(names, keyword.value, call.where), []).append(use)
    return by_variable


def _compiled_model_variables(names: Names) -> frozenset[_Variable]:
    """Return the variables and attributes that a module compiles with a loss or an optimizer."""
    return frozenset(
        _variable_key(names, call.node.func.value, call.where)
        for call in names.calls
        if isinstance(call.node.func, ast.Attribute)
        and call.node.func.attr == "compile"
        and isinstance(call.node.func.value, (ast.Name, ast.Attribute))
        and (_ARGUMENTS & {k.arg for k in call.node.keywords} or _begins_with_optimizer(names, call.node, call.where))
    )


def _begins_with_optimizer(names: Names, call: ast.Call, where: Where) -> bool:
    """Return True if the first of some arguments is an optimizer, or the name of one."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Call):
        return optimizer_role(first, where, names) is not None
    value = constant_or(first, None)
    if isinstance(value, str):
        return value.lower() in _NAMES and names.resolve(call.func, where) is None
    return (
        isinstance(first, (ast.Name, ast.Attribute)) and len(call.args) > 1 and names.resolve(call.func, where) is None
    )


def _variable_key(names: Names, value: ast.Name | ast.Attribute, where: Where) -> _Variable:
    """Return a variable with its scope, or an attribute with the class or the scope that has it."""
    if isinstance(value, ast.Attribute):
        owner = names.owner_class(value.value, where)
        return ast.dump(value), id(owner.node if owner else where.scope)
    bound = names.bindings_of_name(value.id, where)
    return ast.dump(value), id(bound[0].where.scope if bound else where.scope)
