"""The functions and classes of the project that names refer to, and the attributes of classes.

The first argument of a method stands for an object of its class: a binding of an attribute in the class, or in a base
class in the project, is a possible value of ``self.attribute``.
"""

from __future__ import annotations

import ast
from typing import Iterator

from .model import Binding, Where
from .module_index import ClassDefinition, Definition, HeldBinding, ModuleIndex, Names
from .resolved_name import ResolvedName


class Classes(Names):
    """The definitions that the names of one module refer to."""

    def __init__(self, tree: ast.Module, project: ModuleIndex, path: str, keras_apart: bool) -> None:
        super().__init__(tree, project, path, keras_apart)
        # None stands for the names of this module: a reference to them would make a cycle.
        self._held: dict[tuple[ast.ClassDef, str], list[tuple[Binding, Names | None]]] = {}
        self._instance_attributes: dict[str, dict[ast.ClassDef, list[Binding]]] = {}
        self._ancestries: dict[ast.ClassDef, frozenset[str]] = {}

    def forget_answers(self) -> None:
        self._held.clear()

    def definition(self, node: ast.AST, where: Where) -> Definition | None:
        near = self._definition_without_imports(node, where)
        if near is not None:
            return near
        names: Names = self
        name = names.resolved_name(node, where)
        if name is None or not name.is_definition:
            return None
        if name.path != names.path:
            module = names.project.module(name.path)
            if module is None:
                return None
            names = module.names
        bindings = names.module.bindings.get(name.dotted, [])
        if len(bindings) == 1 and bindings[0].node is not None:
            return Definition(bindings[0].node, names)
        return None

    def _definition_without_imports(self, node: ast.AST, where: Where) -> Definition | None:
        """Return the definition of an expression if it is found without following imports."""
        if isinstance(node, ast.Name):
            bindings = self.bindings_of_name(node.id, where) or []
            if len(bindings) == 1 and bindings[0].kind in ("def", "class") and bindings[0].node is not None:
                return Definition(bindings[0].node, self)
        elif isinstance(node, ast.Attribute):
            owner = self.owner_class(node.value, where)
            held = owner.names.attribute_bindings(owner.node, node.attr) if owner else []
            if len(held) == 1 and held[0].binding.kind == "def" and held[0].binding.node is not None:
                return Definition(held[0].binding.node, held[0].names)
        return None

    def name_of_imported_definition(self, node: ast.AST, where: Where) -> ResolvedName | None:
        """Return the name of a definition in another module that an expression refers to."""
        name = self.resolved_name(node, where)
        if (
            name
            and name.is_definition
            and name.path != self.path
            and self._definition_without_imports(node, where) is None
        ):
            return name
        return None

    def owner_class(self, node: ast.AST, where: Where) -> ClassDefinition | None:
        if isinstance(node, ast.Name):
            bindings = self.bindings_of_name(node.id, where) or []
            if len(bindings) == 1 and bindings[0].kind == "arg":
                own_class = self.first_argument_of(bindings[0])
                return ClassDefinition(own_class, self) if own_class else None
        return self.class_definition(node, where) if isinstance(node, (ast.Name, ast.Attribute)) else None

    def attribute_bindings(self, owner: ast.ClassDef, name: str) -> list[HeldBinding]:
        key = (owner, name)
        cuts = self.cuts
        if key not in self._held:
            self._held[key] = []  # for a class that is among its own bases
            own: list[tuple[Binding, Names | None]] = [
                (b, None) for b in self.class_scopes[owner].bindings.get(name, ())
            ]
            of_instances: list[tuple[Binding, Names | None]] = [
                (b, None) for b in self._bindings_on_instances(name).get(owner, ())
            ]
            for base in self._base_classes_in_project(owner):
                of_base = base.names.attribute_bindings(base.node, name)
                of_instances += [
                    (b, None if other is self else other)
                    for b, other in of_base
                    if b.where.scope.node is not base.node or not own
                ]
            self._held[key] = own + of_instances
        held = self._held[key] if self.cuts == cuts else self._held.pop(key)
        return [HeldBinding(binding, other or self) for binding, other in held]

    def _bindings_on_instances(self, attribute: str) -> dict[ast.ClassDef, list[Binding]]:
        """Return what this module assigns to an attribute of instances of its classes, by class."""
        cuts = self.cuts
        if attribute not in self._instance_attributes:
            by_owner = self._instance_attributes[attribute] = {}
            assigned = self.attributes.get(attribute, ())
            # The owner of x in x.y.z may depend on what is assigned to z: names come first.
            for held in sorted(assigned, key=lambda held: not isinstance(held.target.value, ast.Name)):
                owner = self.owner_class(held.target.value, held.binding.where)
                if owner is not None and owner.names is self:
                    by_owner.setdefault(owner.node, []).append(held.binding)
        return self._instance_attributes[attribute] if self.cuts == cuts else self._instance_attributes.pop(attribute)

    def _base_classes_in_project(self, owner: ast.ClassDef) -> Iterator[ClassDefinition]:
        """Yield the classes of the project that a class of this module derives from."""
        for base in owner.bases:
            base_class = self.class_definition(base, self.places[owner])
            if base_class:
                yield base_class

    def outside_ancestors(self, owner: ast.ClassDef) -> frozenset[str]:
        cuts = self.cuts
        if owner not in self._ancestries:
            self._ancestries[owner] = frozenset()  # for a class that is among its own bases
            outside: set[str] = set()
            where = self.places[owner]
            for base in owner.bases:
                name = self.resolved_name(base, where)
                if name and not name.is_definition:
                    outside.add(self.resolve(base, where) or "")
                other = self.name_of_imported_definition(base, where)
                if other:
                    outside |= self.project.outside_ancestors(other.path, other.dotted)
                    continue
                defined = self.class_definition(base, where)
                if defined:
                    outside |= defined.names.outside_ancestors(defined.node)
            self._ancestries[owner] = frozenset(outside)
        return self._ancestries[owner] if self.cuts == cuts else self._ancestries.pop(owner)
