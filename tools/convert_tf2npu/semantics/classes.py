"""The functions and classes of the project that names refer to, and the attributes of classes.

A method's first argument stands for an object of its class: what the class, or a base of it in the
project, binds to an attribute is what ``self.attribute`` can be.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Iterator, cast

from ..syntax.walk import walked
from .model import Binding, Scope, Where
from .reaching_definitions import reaching
from .scopes import Scopes

if TYPE_CHECKING:
    from ..project.project import Project
    from .resolver import Names
    from .types import Types


class Definitions(Scopes):
    """The scopes of one module, with the definitions that its names refer to.

    Args:
        tree: the module.
        project: the files among which it stands.
        path: its own file.
    """

    def __init__(self, tree: ast.Module, project: Project | None, path: str) -> None:
        super().__init__(tree)
        self.project = project
        self.path = path
        self.types: Types  # of its expressions; they set this themselves
        # Of names of its own it says None, for they would hold themselves.
        self._held: dict[tuple[ast.ClassDef, str], list[tuple[Binding, Names | None]]] = {}
        self._ancestries: dict[ast.ClassDef, frozenset[str]] = {}
        self._mentions: dict[str, list[ast.AST]] | None = None
        self._call_places: dict[ast.AST, Where] | None = None
        self._call_numbers: dict[ast.AST, int] | None = None

    def let_go(self) -> None:
        """Forget what is known of other modules."""
        self._held.clear()

    def spelled(self, node: ast.AST, where: Where) -> str | None:
        """The dotted name an expression refers to, by the path the script took to it."""
        raise NotImplementedError

    def resolve(self, node: ast.AST, where: Where) -> str | None:
        """The canonical dotted name of what an expression refers to, or None."""
        raise NotImplementedError

    @property
    def _whole(self) -> Names:
        return cast("Names", self)

    def lookup(self, name: str, where: Where) -> list[Binding] | None:
        """The bindings of a name that can reach a place; None when nothing binds it."""
        scope: Scope | None = where.scope
        first = True
        while scope is not None:
            bindings = scope.bindings.get(name)
            if bindings is not None and (first or not scope.is_class):
                if not first or len(bindings) == 1 and not scope.is_class:
                    return bindings
                found = reaching(bindings, where.path)
                if found or not scope.is_class:  # in a class, a name not yet bound is that outside
                    return found or bindings
            if not scope.is_comprehension:
                first = False
            scope = scope.parent
        return None

    def definition(self, node: ast.AST, where: Where) -> tuple[ast.AST, Names] | None:
        """The one function or class of the project that an expression refers to, with its module."""
        near = self._near(node, where)
        if near is not None:
            return near
        path, _, name = (self.spelled(node, where) or "").partition(":")
        if name and path == self.path:
            bindings, names = self.module.bindings.get(name, []), self._whole
        else:
            module = self.project.module(path) if name and self.project else None
            if module is None:
                return None
            bindings, names = module.names.module.bindings.get(name, []), module.names
        if len(bindings) == 1 and bindings[0].node is not None:
            return bindings[0].node, names
        return None

    def _near(self, node: ast.AST, where: Where) -> tuple[ast.AST, Names] | None:
        """What an expression refers to, where that is seen without following imports."""
        if isinstance(node, ast.Name):
            bindings = self.lookup(node.id, where) or []
            if len(bindings) == 1 and bindings[0].kind in ("def", "class"):
                return bindings[0].node, self._whole  # type: ignore[return-value]
        elif isinstance(node, ast.Attribute):
            owner = self.owner(node.value, where)
            held = owner[1].held(owner[0], node.attr) if owner else []
            if len(held) == 1 and held[0][0].kind == "def":
                return held[0][0].node, held[0][1]  # type: ignore[return-value]
        return None

    def elsewhere(self, node: ast.AST, where: Where) -> tuple[str, str]:
        """The file and the name there of what an expression refers to, where another module has it; else nothing."""
        path, _, name = (self.spelled(node, where) or "").partition(":")
        return (path, name) if name and path != self.path and self._near(node, where) is None else ("", "")

    def owner(self, node: ast.AST, where: Where) -> tuple[ast.ClassDef, Names] | None:
        """The class whose attributes are those of an expression: of ``self``, ``cls``, or a class."""
        if isinstance(node, ast.Name):
            bindings = self.lookup(node.id, where) or []
            if len(bindings) == 1 and bindings[0].kind == "arg":
                found = self.first_argument_of(bindings[0])
                return (found, self._whole) if found else None
        defined = self.definition(node, where) if isinstance(node, (ast.Name, ast.Attribute)) else None
        return (defined[0], defined[1]) if defined and isinstance(defined[0], ast.ClassDef) else None

    def first_argument_of(self, binding: Binding) -> ast.ClassDef | None:
        """The class of the method whose first argument a binding is: ``self`` or ``cls``, as a rule."""
        function = binding.where.scope.node
        parent = self.parents.get(function)
        arguments = getattr(function, "args", None)
        if (
            isinstance(parent, ast.ClassDef)
            and arguments
            and arguments.args
            and arguments.args[0] is binding.node
            and not any(
                getattr(d, "id", "") == "staticmethod"
                for d in function.decorator_list  # type: ignore[attr-defined]
            )
        ):
            return parent
        return None

    def held(self, owner: ast.ClassDef, name: str) -> list[tuple[Binding, Names]]:
        """What binds an attribute of a class of this module or of its objects, in it or in its bases,
        each with the names of its module."""
        key = (owner, name)
        if key not in self._held:
            self._held[key] = []  # of a class among its own bases
            own: list[tuple[Binding, Names | None]] = [
                (b, None) for b in self.class_scopes[owner].bindings.get(name, ())
            ]
            of_objects: list[tuple[Binding, Names | None]] = [
                (h.binding, None)
                for h in self.attributes.get(name, ())
                if self.owner(h.target.value, h.binding.where) == (owner, self._whole)
            ]
            for base, names in self.bases(owner):
                of_base = names.held(base, name)
                of_objects += [
                    (b, None if other is self else other)
                    for b, other in of_base
                    if b.where.scope.node is not base or not own
                ]
            self._held[key] = own + of_objects
        return [(binding, names or self._whole) for binding, names in self._held[key]]

    def bases(self, owner: ast.ClassDef) -> Iterator[tuple[ast.ClassDef, Names]]:
        """The classes of the project that a class of this module is made from."""
        for base in owner.bases:
            found = self.definition(base, self.places[owner])
            if found and isinstance(found[0], ast.ClassDef):
                yield found[0], found[1]

    def ancestry(self, owner: ast.ClassDef) -> frozenset[str]:
        """The names of the classes outside the project that a class of this module is made from."""
        if owner not in self._ancestries:
            self._ancestries[owner] = frozenset()  # of a class among its own bases
            found: set[str] = set()
            where = self.places[owner]
            for base in owner.bases:
                name = self.resolve(base, where)
                if name and ":" not in name:
                    found.add(name)
                path, inner = self.elsewhere(base, where)
                if inner and self.project:
                    found |= self.project.ancestry(path, inner)
                    continue
                defined = self.definition(base, where)
                if defined and isinstance(defined[0], ast.ClassDef):
                    found |= defined[1].ancestry(defined[0])
            self._ancestries[owner] = frozenset(found)
        return self._ancestries[owner]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the innermost first."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def mentions(self, word: str) -> list[ast.AST]:
        """Where a name is read, as a name or as an attribute."""
        if self._mentions is None:
            self._mentions = {}
            for node in walked(self.tree):
                if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                    self._mentions.setdefault(node.id if isinstance(node, ast.Name) else node.attr, []).append(node)
        return self._mentions.get(word, [])

    def key(self, call: ast.Call) -> tuple[str, int]:
        """The file of a call of this module, and its number there: the same however often the file is read."""
        if self._call_numbers is None:
            self._call_numbers = {each.node: number for number, each in enumerate(self.calls)}
        return self.path, self._call_numbers[call]

    def place(self, node: ast.AST) -> Where:
        """The place of an expression; of one that is no call, inside a lambda, that of the statement."""
        if self._call_places is None:
            self._call_places = {call.node: call.where for call in self.calls}
        for around in [node] + list(self.ancestors(node)):
            found = self._call_places.get(around) or self.places.get(around)
            if found:
                return found
        return Where(self.module.ref, (), None)
