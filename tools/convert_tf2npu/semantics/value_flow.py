"""Data flow: the expressions that a value can come from, through names, functions, attributes and files.

A type (:mod:`types`) is common to all origins. A rule that acts on each origin, as on every optimizer that a function
may return, asks for them one by one.
"""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..syntax.expressions import is_none, tuple_element
from .call_sites import values_passed_to_method, values_passed_to_parameter
from .model import Binding, Where
from .module_index import Definition, HeldBinding, Names
from .scopes import own_returns
from .signatures import bind_arguments


class Origin(NamedTuple):
    """The end of a data flow: a call of something outside the project, a literal, a definition, or an unknown name.

    Attributes:
        node: the expression.
        where: its place.
        names: the names of its module.
    """

    node: ast.AST
    where: Where
    names: Names

    def resolve(self) -> str | None:
        """Return the canonical dotted name of the expression, or of the function that it calls."""
        node = self.node.func if isinstance(self.node, ast.Call) else self.node
        return self.names.resolve(node, self.where)


def origins(node: ast.AST, where: Where, names: Names, follows_methods: bool = False) -> list[Origin]:
    """Return every expression that the value of an expression can come from, except None.

    Args:
        node: the expression.
        where: its place.
        names: the names of its module.
        follows_methods: follow the arguments of methods, too, which takes more time (:func:`values_passed_to_method`).
    """
    by_node: dict[int, Origin] = {}
    for origin in _Search(follows_methods).origins_of(node, where, names):
        if not is_none(origin.node):
            by_node.setdefault(id(origin.node), origin)
    return list(by_node.values())


class _Search:
    """One search; an expression that depends on itself adds nothing."""

    def __init__(self, methods: bool) -> None:
        self._methods = methods
        self._seen: set[tuple[int, int]] = set()

    def origins_of(self, node: ast.AST, where: Where, names: Names) -> Iterator[Origin]:
        key = (id(node), id(where.scope))
        if key in self._seen:
            return
        self._seen.add(key)
        if isinstance(node, ast.Name):
            bindings = names.bindings_of_name(node.id, where)
            for binding in bindings or ():
                yield from self._origins_of_binding(binding, names, node)
            if not bindings:
                yield Origin(node, where, names)
        elif isinstance(node, ast.Attribute):
            yield from self._origins_of_attribute(node, where, names)
        elif isinstance(node, ast.IfExp):
            yield from self._origins_of_nodes([node.body, node.orelse], where, names)
        elif isinstance(node, ast.BoolOp):
            yield from self._origins_of_nodes(node.values, where, names)
        elif isinstance(node, ast.Subscript):
            yield from self._origins_of_subscript(node, where, names)
        elif isinstance(node, ast.Call):
            yield from self._origins_of_call(node, "", where, names)
        elif type(node).__name__ == "NamedExpr":
            yield from self.origins_of(node.value, where, names)  # type: ignore[attr-defined]
        else:
            yield Origin(node, where, names)

    def _origins_of_nodes(self, nodes: list[ast.expr], where: Where, names: Names) -> Iterator[Origin]:
        for node in nodes:
            yield from self.origins_of(node, where, names)

    def _origins_of_binding(self, binding: Binding, names: Names, use: ast.AST) -> Iterator[Origin]:
        """Yield the origins of what a binding binds, or the use itself if they are unknown."""
        if binding.kind == "value" and binding.node is not None:
            yield from self.origins_of(binding.node, binding.where, names)
        elif binding.kind in ("def", "class") and binding.node is not None:
            yield Origin(binding.node, binding.where, names)
        elif binding.kind == "part" and isinstance(binding.node, ast.Call):
            yield from self._origins_of_call(binding.node, binding.target, binding.where, names, use)
        elif binding.kind == "arg":
            values = values_passed_to_parameter(binding, names)
            if values is None and self._methods:
                values = values_passed_to_method(binding, names)
            for value in values or ():
                yield from self.origins_of(value.value, value.where, value.names)
            if values is None:
                yield Origin(use, binding.where, names)
        elif binding.kind == "import":
            yield from self._origins_of_import(binding, names, use)
        else:
            yield Origin(use, binding.where, names)

    def _origins_of_import(self, binding: Binding, names: Names, use: ast.AST) -> Iterator[Origin]:
        project = names.project
        origin = project.file_of_import(binding.target, names.path)
        module = project.module(origin[0]) if origin and len(origin[1]) == 1 else None
        bindings = module.names.module.bindings.get(origin[1][0], []) if module and origin else []
        for bound in bindings:
            if module is not None and (id(bound), 0) not in self._seen:
                self._seen.add((id(bound), 0))
                yield from self._origins_of_binding(bound, module.names, use)
        if not bindings:
            yield Origin(use, binding.where, names)

    def _origins_of_attribute(self, node: ast.Attribute, where: Where, names: Names) -> Iterator[Origin]:
        owner = names.owner_class(node.value, where)
        held = (
            owner.names.attribute_bindings(owner.node, node.attr)
            if owner
            else self._bindings_of_object_attribute(node, where, names)
        )
        if not held:
            base = names.resolved_name(node.value, where)
            module = names.project.module(base.path) if base and base.is_module_of_project else None
            if module is not None:
                held = [HeldBinding(b, module.names) for b in module.names.module.bindings.get(node.attr, ())]
        held = held or [HeldBinding(b, names) for b in names.attribute_assignments(node, where)]
        for binding, its_names in held:
            yield from self._origins_of_binding(binding, its_names, node)
        if not held:
            yield Origin(node, where, names)

    def _bindings_of_object_attribute(self, node: ast.Attribute, where: Where, names: Names) -> list[HeldBinding]:
        """Return the bindings of an attribute of an object, in the class of the project that makes the object."""
        held: list[HeldBinding] = []
        for origin in self.origins_of(node.value, where, names):
            if isinstance(origin.node, ast.Call):
                made_class = origin.names.class_definition(origin.node.func, origin.where)
                held += made_class.names.attribute_bindings(made_class.node, node.attr) if made_class else []
        return held

    def _origins_of_subscript(self, node: ast.Subscript, where: Where, names: Names) -> Iterator[Origin]:
        """Yield the origins of all members of a literal dictionary, list or tuple."""
        for origin in list(self.origins_of(node.value, where, names)):
            if isinstance(origin.node, ast.Dict):
                members = origin.node.values
            elif isinstance(origin.node, (ast.List, ast.Tuple)):
                members = origin.node.elts
            else:
                yield Origin(node, where, names)
                continue
            yield from self._origins_of_nodes(members, origin.where, origin.names)

    def _origins_of_call(
        self, node: ast.Call, part: str, where: Where, names: Names, use: ast.AST | None = None
    ) -> Iterator[Origin]:
        """Yield the origins of the result of a function of the project, or of a part of it; else the call itself."""
        defined = names.definition(node.func, where)
        functions = [defined] if defined is not None else self._functions_held_by(node.func, where, names)
        if not functions:
            yield Origin(use or node, where, names)
        for function, its_names in functions:
            results = list(_returned_expressions(function, its_names))
            if not results:
                yield Origin(use or node, where, names)
            for result, place in results:
                value = tuple_element(result, part)
                own = self._argument_returned_unchanged(node, function, value, place, its_names)
                if own is not None:
                    yield from self.origins_of(own, where, names)
                elif value is not None:
                    yield from self.origins_of(value, place, its_names)
                else:
                    yield Origin(use or node, where, names)

    def _functions_held_by(self, node: ast.expr, where: Where, names: Names) -> list[Definition]:
        """Return what a variable or an attribute of an object of a class of the project may hold, if it is called."""
        held = isinstance(node, ast.Attribute) and names.owner_class(node.value, where) is not None
        if not (held or isinstance(node, ast.Name)) or names.resolve(node, where) is not None:
            return []
        return [Definition(origin.node, origin.names) for origin in self.origins_of(node, where, names)]

    def _argument_returned_unchanged(
        self, node: ast.Call, function: ast.AST | None, value: ast.AST | None, place: Where, names: Names
    ) -> ast.expr | None:
        """Return the argument of a call whose parameter the function returns unchanged."""
        if not isinstance(value, ast.Name) or not isinstance(function, ast.FunctionDef):
            return None
        bindings = names.bindings_of_name(value.id, place) or []
        if len(bindings) != 1 or bindings[0].kind != "arg" or bindings[0].where.scope.node is not function:
            return None
        return bind_arguments(node, tuple(a.arg for a in function.args.args)).args.get(value.id)


def _returned_expressions(function: ast.AST, names: Names) -> Iterator[tuple[ast.expr, Where]]:
    """Yield the expressions that a function returns, with their places; none for what is no function."""
    if isinstance(function, ast.FunctionDef):
        for returned in own_returns(function):
            if returned.value is not None:
                yield returned.value, names.places[returned]
    elif isinstance(function, ast.Lambda):
        yield function.body, names.place(function.body)
