"""Questions about the position of nodes in the tree of a module."""

from __future__ import annotations

import ast
from typing import Iterator

from .model import Scope, Where
from .scopes import Scopes


class Positions:
    """The positions of the nodes of one module.

    Args:
        scopes: the walk over the module.
        path: its file.
    """

    def __init__(self, scopes: Scopes, path: str) -> None:
        self._scopes = scopes
        self._path = path
        self._mentions: dict[str, list[ast.AST]] | None = None
        self._inside: dict[str, dict[ast.AST, list[ast.AST]]] = {}
        self._call_places: dict[ast.AST, Where] | None = None
        self._call_numbers: dict[ast.AST, int] | None = None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first."""
        parents = self._scopes.parents
        parent = parents.get(node)
        while parent is not None:
            yield parent
            parent = parents.get(parent)

    def mentions(self, word: str, inside: ast.AST | None = None) -> list[ast.AST]:
        """Return the expressions that read a name or an attribute of that name, in the whole module or in a scope."""
        if self._mentions is None:
            self._mentions = {}
            for name, _ in self._scopes.reads:
                self._mentions.setdefault(name.id, []).append(name)
            for node in self._scopes.parents:
                if type(node) is ast.Attribute and type(node.ctx) is ast.Load:
                    self._mentions.setdefault(node.attr, []).append(node)
        found = self._mentions.get(word, [])
        if inside is None:
            return found
        if word not in self._inside:
            by_scope = self._inside.setdefault(word, {})
            for node in found:
                scope: Scope | None = self.place(node).scope
                while scope is not None:
                    by_scope.setdefault(scope.node, []).append(node)
                    scope = scope.parent
        return self._inside[word].get(inside, [])

    def key(self, call: ast.Call) -> tuple[str, int]:
        """Return the file of a call of this module and its number there, the same each time the file is read."""
        if self._call_numbers is None:
            self._call_numbers = {each.node: number for number, each in enumerate(self._scopes.calls)}
        return self._path, self._call_numbers[call]

    def place(self, node: ast.AST) -> Where:
        """Return the place of an expression; for a non-call inside a lambda, the place of the statement."""
        if self._call_places is None:
            self._call_places = {call.node: call.where for call in self._scopes.calls}
        for around in [node] + list(self.ancestors(node)):
            found = self._call_places.get(around) or self._scopes.places.get(around)
            if found:
                return found
        return Where(self._scopes.module.ref, (), None)
