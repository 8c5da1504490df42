"""Tell the methods of Keras' models from those that a class of the project has in their place."""

from __future__ import annotations

import ast
from typing import Iterator

from ..project.context import Context
from ..semantics.model import Binding, Call, Where
from ..semantics.module_index import Names
from ..semantics.tf_types import Type, type_of_subclass
from .surrounding_files import names_of_surrounding_files


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


def may_model_define(context: Context, method: str) -> bool:
    """Return True if a class of a Keras model in the files around a file defines a method itself."""
    return any(
        any(held.binding.kind == "def" for held in names.attribute_bindings(node, method))
        and any(type_of_subclass(base) == Type.MODEL for base in names.outside_ancestors(node))
        for names in names_of_surrounding_files(context, lambda raw: method.encode() in raw)
        for node, _ in names.classes
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
