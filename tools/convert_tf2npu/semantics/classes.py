"""The functions and classes of the project that names refer to, and the attributes of classes.

The first argument of a method stands for an object of its class: a binding of an attribute in the class, or in a base
class in the project, is a possible value of ``self.attribute``.
"""

from __future__ import annotations

import ast
import weakref
from typing import Iterator

from .model import Binding, Where
from .module_index import ClassDefinition, Definition, HeldBinding, Names
from .resolved_name import ResolvedName


class Classes:
    """The definitions that the names of one module refer to.

    Args:
        names: the names of the module, which own this object.
    """

    def __init__(self, names: Names) -> None:
        self._names_ref = weakref.ref(names)
        # None stands for the names of this module: a reference to them would make a cycle.
        self._held: dict[tuple[ast.ClassDef, str], list[tuple[Binding, Names | None]]] = {}
        self._of_objects: dict[str, dict[ast.ClassDef, list[Binding]]] = {}
        self._ancestries: dict[ast.ClassDef, frozenset[str]] = {}

    @property
    def _names(self) -> Names:
        return self._names_ref()  # type: ignore[return-value]

    def let_go(self) -> None:
        """Forget all answers that refer to other modules."""
        self._held.clear()

    def definition(self, node: ast.AST, where: Where) -> Definition | None:
        """Return the one function or class of the project that an expression refers to."""
        near = self._near(node, where)
        if near is not None:
            return near
        names = self._names
        name = names.named(node, where)
        if name is None or not name.is_definition:
            return None
        if name.path != names.path:
            module = names.project.module(name.path) if names.project else None
            if module is None:
                return None
            names = module.names
        bindings = names.module.bindings.get(name.dotted, [])
        if len(bindings) == 1 and bindings[0].node is not None:
            return Definition(bindings[0].node, names)
        return None

    def _near(self, node: ast.AST, where: Where) -> Definition | None:
        """Return the definition of an expression if it is found without following imports."""
        if isinstance(node, ast.Name):
            names = self._names
            bindings = names.lookup(node.id, where) or []
            if len(bindings) == 1 and bindings[0].kind in ("def", "class") and bindings[0].node is not None:
                return Definition(bindings[0].node, names)
        elif isinstance(node, ast.Attribute):
            owner = self.owner(node.value, where)
            held = owner.names.held(owner.node, node.attr) if owner else []
            if len(held) == 1 and held[0].binding.kind == "def" and held[0].binding.node is not None:
                return Definition(held[0].binding.node, held[0].names)
        return None

    def elsewhere(self, node: ast.AST, where: Where) -> ResolvedName | None:
        """Return the name of a definition in another module that an expression refers to."""
        names = self._names
        name = names.named(node, where)
        if name and name.is_definition and name.path != names.path and self._near(node, where) is None:
            return name
        return None

    def owner(self, node: ast.AST, where: Where) -> ClassDefinition | None:
        """Return the class whose attributes an expression has: ``self``, ``cls``, or a class."""
        if isinstance(node, ast.Name):
            names = self._names
            bindings = names.lookup(node.id, where) or []
            if len(bindings) == 1 and bindings[0].kind == "arg":
                found = self.first_argument_of(bindings[0])
                return ClassDefinition(found, names) if found else None
        defined = self.definition(node, where) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if defined is None or not isinstance(defined.node, ast.ClassDef):
            return None
        return ClassDefinition(defined.node, defined.names)

    def first_argument_of(self, binding: Binding) -> ast.ClassDef | None:
        """Return the class of the method whose first argument (as a rule ``self`` or ``cls``) a binding is."""
        function = binding.where.scope.node
        parent = self._names.parents.get(function)
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

    def held(self, owner: ast.ClassDef, name: str) -> list[HeldBinding]:
        """Return the bindings of an attribute of a class of this module, in the class or its bases."""
        names = self._names
        key = (owner, name)
        if key not in self._held:
            self._held[key] = []  # for a class that is among its own bases
            own: list[tuple[Binding, Names | None]] = [
                (b, None) for b in names.class_scopes[owner].bindings.get(name, ())
            ]
            of_objects: list[tuple[Binding, Names | None]] = [(b, None) for b in self._by_owner(name).get(owner, ())]
            for base in self._bases(owner):
                of_base = base.names.held(base.node, name)
                of_objects += [
                    (b, None if other is names else other)
                    for b, other in of_base
                    if b.where.scope.node is not base.node or not own
                ]
            self._held[key] = own + of_objects
        return [HeldBinding(binding, other or names) for binding, other in self._held[key]]

    def _by_owner(self, name: str) -> dict[ast.ClassDef, list[Binding]]:
        """Return what this module assigns to an attribute of objects of its classes, by their classes."""
        if name not in self._of_objects:
            found = self._of_objects[name] = {}
            assigned = self._names.attributes.get(name, ())
            # The owner of x in x.y.z may depend on what is assigned to z: names come first.
            for held in sorted(assigned, key=lambda held: not isinstance(held.target.value, ast.Name)):
                owner = self.owner(held.target.value, held.binding.where)
                if owner is not None and owner.names is self._names:
                    found.setdefault(owner.node, []).append(held.binding)
        return self._of_objects[name]

    def assigned(self, node: ast.Attribute, where: Where) -> list[Binding]:
        """Return what this module assigns to an attribute of a variable, as in ``tf.model = Sequential()``."""
        names, value = self._names, node.value
        bindings = names.lookup(value.id, where) if isinstance(value, ast.Name) else None
        if not isinstance(value, ast.Name) or not bindings or any(b.kind == "arg" for b in bindings):
            return []
        return [
            held.binding
            for held in names.attributes.get(node.attr, ())
            if isinstance(held.target.value, ast.Name)
            and held.target.value.id == value.id
            and names.lookup(value.id, held.binding.where) == bindings
        ]

    def _bases(self, owner: ast.ClassDef) -> Iterator[ClassDefinition]:
        """Yield the classes of the project that a class of this module derives from."""
        for base in owner.bases:
            found = self.definition(base, self._names.places[owner])
            if found and isinstance(found.node, ast.ClassDef):
                yield ClassDefinition(found.node, found.names)

    def ancestry(self, owner: ast.ClassDef) -> frozenset[str]:
        """Return the names of the classes outside the project that a class of this module derives from."""
        names = self._names
        if owner not in self._ancestries:
            self._ancestries[owner] = frozenset()  # for a class that is among its own bases
            found: set[str] = set()
            where = names.places[owner]
            for base in owner.bases:
                name = names.named(base, where)
                if name and not name.is_definition:
                    found.add(names.resolve(base, where) or "")
                other = self.elsewhere(base, where)
                if other and names.project:
                    found |= names.project.ancestry(other.path, other.dotted)
                    continue
                defined = self.definition(base, where)
                if defined and isinstance(defined.node, ast.ClassDef):
                    found |= defined.names.ancestry(defined.node)
            self._ancestries[owner] = frozenset(found)
        return self._ancestries[owner]
