"""Tell the methods of Keras' models from those that a class of the project has in their place."""

from __future__ import annotations

import ast
from typing import Iterator

from ..project.context import Context
from ..semantics.model import Binding, Call, Where
from ..semantics.module_index import Names
from ..semantics.tf_types import Type


def is_keras_method(context: Context, call: Call) -> bool:
    """Return True for a call of a method of a Keras model that its class does not replace."""
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and context.types.type_of(function.value, call.where) == Type.MODEL
        and not any(
            _replaces_method(names, creation, where, function.attr)
            for names, creation, where in _creation_calls(context.names, function.value, call.where)
        )
    )


def _creation_calls(names: Names, value: ast.expr, where: Where) -> Iterator[tuple[Names, ast.Call, Where]]:
    """Yield the calls that may create the object that an expression is, each with the names of its module."""
    if isinstance(value, ast.Call):
        yield names, value, where
        return
    held: list[tuple[Binding, Names]] = []
    if isinstance(value, ast.Name):
        held = [(binding, names) for binding in names.bindings_of_name(value.id, where) or ()]
    elif isinstance(value, ast.Attribute):
        owner = names.owner_class(value.value, where)
        held = list(owner.names.attribute_bindings(owner.node, value.attr)) if owner else []
        held = held or [(binding, names) for binding in names.attribute_assignments(value, where)]
    for binding, home in held:
        if binding.kind == "value" and isinstance(binding.node, ast.Call):
            yield home, binding.node, binding.where


def _replaces_method(names: Names, creation: ast.Call, where: Where, method: str) -> bool:
    """Return True if an object is of a class of the project with a method that does not call the one of its base."""
    its_class = names.class_definition(creation.func, where)
    if its_class is None:
        return False
    own = [
        held.binding.node
        for held in its_class.names.attribute_bindings(its_class.node, method)
        if held.binding.kind == "def"
    ]
    return bool(own) and not any(
        isinstance(node, ast.Attribute) and node.attr == method and isinstance(node.value, ast.Call)
        for function in own
        if function is not None
        for node in ast.walk(function)
    )
