"""The tables of one module: what it binds, reads and calls, and where."""

from __future__ import annotations

import ast
from typing import Iterator

from .model import Binding, Scope, Where
from .once import Once
from .reaching_definitions import bindings_of_name
from .scopes import Scopes


class ModuleTables(Once):
    """The tables of the walk over one module, and the questions that they answer without resolving a name.

    Attributes:
        tree: the module.
        path: its file; empty for code without a file.
        calls: every call, in the order of the file.
        reads: every use of a name.
        strings: the f-string around an expression in one.
        functions: every function and lambda.
        classes: every class with its place.
        class_scopes: the scope of each class.
        attributes: the attributes that are assigned to, by name.
        stars: the star imports.
        parents: the parent of each node.
        places: the place of each statement.
        module: the module's own scope.
    """

    bindings_of_name = staticmethod(bindings_of_name)

    def __init__(self, tree: ast.Module, path: str) -> None:
        super().__init__()
        self.tree, self.path = tree, path
        scopes = self._scopes = Scopes(tree)  # kept: places refer weakly to its scopes
        self.calls, self.reads, self.strings = scopes.calls, scopes.reads, scopes.strings
        self.functions, self.classes, self.class_scopes = scopes.functions, scopes.classes, scopes.class_scopes
        self.attributes, self.stars = scopes.attributes, scopes.stars
        self.parents, self.places, self.module = scopes.parents, scopes.places, scopes.module
        self._mentions: dict[str, list[ast.AST]] | None = None
        self._inside: dict[str, dict[ast.AST, list[ast.AST]]] = {}
        self._call_places: dict[ast.AST, Where] | None = None
        self._call_numbers: dict[ast.AST, int] | None = None

    def names_bound_by_one_definition(self) -> frozenset[str]:
        """Return the names of the functions and classes of the module that nothing else binds."""
        return frozenset(
            name
            for name, (first, *others) in self.module.bindings.items()
            if first.kind in ("class", "def") and not others and first.where.scope is self.module
        )

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first."""
        parents = self.parents
        parent = parents.get(node)
        while parent is not None:
            yield parent
            parent = parents.get(parent)

    def mentions(self, word: str, inside: ast.AST | None = None) -> list[ast.AST]:
        """Return the expressions that read a name or an attribute of that name.

        Args:
            word: the name.
            inside: the node of a scope, to return only those in it or in a scope in it.
        """
        if self._mentions is None:
            self._mentions = {}
            for name, _ in self.reads:
                self._mentions.setdefault(name.id, []).append(name)
            for node in self.parents:
                if type(node) is ast.Attribute and type(node.ctx) is ast.Load:
                    self._mentions.setdefault(node.attr, []).append(node)
        everywhere = self._mentions.get(word, [])
        if inside is None:
            return everywhere
        if word not in self._inside:
            by_scope = self._inside.setdefault(word, {})
            for node in everywhere:
                scope: Scope | None = self.place(node).scope
                while scope is not None:
                    by_scope.setdefault(scope.node, []).append(node)
                    scope = scope.parent
        return self._inside[word].get(inside, [])

    def call_key(self, call: ast.Call) -> tuple[str, int]:
        """Return the file of a call of this module and its number there, the same each time the file is read."""
        if self._call_numbers is None:
            self._call_numbers = {listed.node: number for number, listed in enumerate(self.calls)}
        return self.path, self._call_numbers[call]

    def place(self, node: ast.AST) -> Where:
        """Return the place of an expression; for a non-call inside a lambda, the place of the statement."""
        if self._call_places is None:
            self._call_places = {call.node: call.where for call in self.calls}
        around: ast.AST | None = node
        while around is not None:
            where = self._call_places.get(around) or self.places.get(around)
            if where:
                return where
            around = self.parents.get(around)
        return Where(self.module.ref, (), None)

    def first_argument_of(self, binding: Binding) -> ast.ClassDef | None:
        """Return the class of the method whose first argument (as a rule ``self`` or ``cls``) a binding is."""
        function = binding.where.scope.node
        parent = self.parents.get(function)
        arguments = getattr(function, "args", None)
        if (
            isinstance(parent, ast.ClassDef)
            and arguments
            and arguments.args
            and arguments.args[0] is binding.node
            and not any(
                isinstance(d, ast.Name) and d.id == "staticmethod"
                for d in function.decorator_list  # type: ignore[attr-defined]
            )
        ):
            return parent
        return None

    def attribute_assignments(self, node: ast.Attribute, where: Where) -> list[Binding]:
        """Return what this module assigns to an attribute of a variable, as in ``tf.model = Sequential()``."""
        value = node.value
        bindings = self.bindings_of_name(value.id, where) if isinstance(value, ast.Name) else None
        if not isinstance(value, ast.Name) or not bindings or any(b.kind == "arg" for b in bindings):
            return []
        return [
            held.binding
            for held in self.attributes.get(node.attr, ())
            if isinstance(held.target.value, ast.Name)
            and held.target.value.id == value.id
            and self.bindings_of_name(value.id, held.binding.where) == bindings
        ]
