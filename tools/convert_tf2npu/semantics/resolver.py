"""Name resolution: from an expression to the dotted name of what it refers to.

Resolution follows imports, aliases, assignments, attributes that the script sets, and functions of the project that
return a module or class. If the bindings that reach a use disagree, or one of them is unknown, the answer is None and a
rule leaves the code unchanged.

:class:`Resolver` puts the parts together: the walk over the module (:mod:`scopes`), reaching definitions, the positions
of nodes and the classes of the project.
"""

from __future__ import annotations

import ast
import functools
from typing import Callable, cast

from ..syntax.expressions import boxed_constant, constant_or, index_of, is_none, tuple_element
from ..tf_api.v1_fate import V1, compat_v1_spelling, fate_of_v1_name
from .classes import Classes
from .model import Binding, Where
from .module_index import ModuleIndex
from .reaching_definitions import bindings_of_name
from .resolved_name import ResolvedName, common_name
from .scopes import own_returns
from .stars import name_from_stars, names_with_later_stars

_NAMED = (ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.Subscript)
# Decorators under which a function still returns what its return statements say.
_TRANSPARENT = frozenset({"functools.lru_cache", "functools.cache", "functools.wraps"})
# Calls that import the module of a given name, and the position of that argument.
_IMPORTERS = {"importlib.import_module": 0, "tensorflow.python.util.lazy_loader.LazyLoader": 2}
_SYS_MODULES = ResolvedName("sys.modules")
# This takes half the time of ResolvedName(...).
_of_library: Callable[[tuple[str, str]], ResolvedName] = functools.partial(tuple.__new__, ResolvedName)


class Resolver(Classes):
    """Name resolution for one module.

    Args:
        tree: the module.
        project: the index of the project, for names that the module imports from other files.
        path: the file of the module.
        keras_apart: True if the package keras is another one than tf.keras.
    """

    def __init__(self, tree: ast.Module, project: ModuleIndex, path: str = "", keras_apart: bool = False) -> None:
        super().__init__(tree, project, path, keras_apart)
        self._resolving: set[int] = set()
        self._followed: dict[str, ResolvedName | None] = {}
        self._known: dict[ast.AST, ResolvedName | None] = {}
        self._returns: dict[tuple[ast.AST, str], ResolvedName | None] = {}

    def forget_resolved_names(self) -> None:
        self._known.clear()
        self._returns.clear()

    def resolved_name(self, node: ast.AST, where: Where) -> ResolvedName | None:
        kind = type(node)  # faster than isinstance, for each name of a project
        if kind is ast.Name:
            return self._resolve_word(node.id, bindings_of_name(node.id, where))  # type: ignore[attr-defined]
        if kind is ast.Attribute or kind is ast.Call:
            known = self._known
            if node not in known:
                cuts = self.cuts
                known[node] = None  # for an expression that depends on itself
                find: Callable[..., ResolvedName | None] = (
                    self._resolve_attribute if kind is ast.Attribute else self._resolve_call
                )
                known[node] = name = find(node, where)
                if self.cuts != cuts:
                    del known[node]
                return name
            return known[node]
        if isinstance(node, ast.IfExp):
            return self._common_name(
                {self.resolved_name(part, where) for part in (node.body, node.orelse) if not is_none(part)}
            )
        if isinstance(node, ast.Subscript) and self.resolved_name(node.value, where) == _SYS_MODULES:
            key = boxed_constant(index_of(node))
            return self._follow_import(key[0]) if key else None
        return None

    def name_for_importers(self, name: str) -> ResolvedName | None:
        bindings = self.module.bindings.get(name)
        return self._common_name_of_bindings(bindings) if bindings else self._resolve_from_star(name)

    def binding_name(self, binding: Binding) -> ResolvedName | None:
        """Return what a binding of this module binds its name to."""
        if binding.kind == "import":
            return self._follow_import(binding.target)
        if binding.kind in ("def", "class") and self.path and binding.where.scope is self.module:
            return ResolvedName(getattr(binding.node, "name", ""), self.path)
        if not needs_syntax_tree(binding):
            return None
        key = id(binding.node)
        if key in self._resolving:
            return None  # for a value that is made of the name itself
        self._resolving.add(key)
        try:
            if binding.kind == "part":
                return self._name_of_call_result(cast(ast.Call, binding.node), binding.where, binding.target)
            return self.resolved_name(cast(ast.AST, binding.node), binding.where)
        finally:
            self._resolving.discard(key)

    def name_of_result(self, function: ast.FunctionDef, part: str) -> ResolvedName | None:
        key = (function, part)
        cuts = self.cuts
        if key not in self._returns:
            self._returns[key] = None  # for a function that calls itself
            if all(
                self.resolve(d.func if isinstance(d, ast.Call) else d, self.places[function]) in _TRANSPARENT
                for d in function.decorator_list
            ):
                values = [(tuple_element(r.value, part), r) for r in own_returns(function) if r.value is not None]
                self._returns[key] = self._common_name(
                    {
                        self.resolved_name(value, self.places[r]) if value is not None else None
                        for value, r in values
                        if not is_none(value) and not is_none(r.value)
                    }
                )
        return self._returns[key] if self.cuts == cuts else self._returns.pop(key)

    def _common_name(self, candidates: set[ResolvedName | None]) -> ResolvedName | None:
        return common_name(candidates, self._canonical)

    def _resolve_word(self, word: str, bindings: list[Binding] | None) -> ResolvedName | None:
        if bindings is None:
            return self._resolve_from_star(word)
        if not self.stars and len(bindings) == 1 and bindings[0].kind == "import":
            return self._follow_import(bindings[0].target)
        name = self._common_name_of_bindings(bindings)
        if name and self.stars:
            return self._common_name(
                names_with_later_stars(name, word, bindings, self.module, self.stars, self.project, self.path)
            )
        return name

    def _common_name_of_bindings(self, bindings: list[Binding]) -> ResolvedName | None:
        if len(bindings) == 1:
            return self.binding_name(bindings[0])
        # None has no attributes and cannot be called: where a name is used, it is one of the other values.
        return self._common_name(
            {self.binding_name(b) for b in bindings if not (b.kind == "value" and is_none(b.node))}
        )

    def _lift_to_v1(self, name: ResolvedName | None) -> ResolvedName | None:
        """Return a name as it is after the file is lifted to tf.compat.v1."""
        if name and self.lift and not name.path:
            if name.dotted == V1 + ".compat.v1":
                return ResolvedName(V1)
            if self.by_name and name.dotted.startswith("tensorflow.") and fate_of_v1_name(name.dotted) in self.by_name:
                return ResolvedName(compat_v1_spelling(name.dotted))
        return name

    def _follow_import(self, module: object) -> ResolvedName | None:
        if not isinstance(module, str):
            return None
        cuts = self.cuts
        if module not in self._followed:
            self._followed[module] = self.project.resolve_import(module, self.path)
        return self._followed[module] if self.cuts == cuts else self._followed.pop(module)

    def _resolve_member(self, base: ResolvedName, name: str) -> ResolvedName | None:
        if base.path:
            return self.project.resolve_attribute(base, name)
        return _of_library((f"{base.dotted}.{name}", ""))

    def _resolve_attribute(self, node: ast.Attribute, where: Where) -> ResolvedName | None:
        value = node.value
        bindings = bindings_of_name(value.id, where) if isinstance(value, ast.Name) else None
        base = (
            self._resolve_word(value.id, bindings) if isinstance(value, ast.Name) else self.resolved_name(value, where)
        )
        if base and not (base.path and base.dotted):
            name = self._lift_to_v1(self._resolve_member(base, node.attr))
            held_here = self.attributes.get(node.attr)
            if not held_here:
                return name
            set_here = [
                held.binding for held in held_here if self.resolved_name(held.target.value, held.binding.where) == base
            ]
            return self._common_name({name} | {self.binding_name(b) for b in set_here}) if set_here else name
        if bindings is not None and base is None and bindings[0].kind not in ("arg", "def", "class"):
            return None
        owner = self.owner_class(value, where)
        if owner is None:
            return None
        candidates: set[ResolvedName | None] = set()
        for binding, names in owner.names.attribute_bindings(owner.node, node.attr):
            if not (binding.kind == "value" and is_none(binding.node)):
                candidates.add(cast(Resolver, names).binding_name(binding))
        return self._common_name(candidates)

    def _resolve_call(self, node: ast.Call, where: Where) -> ResolvedName | None:
        function = node.func
        if (
            isinstance(function, ast.Name)
            and function.id in ("getattr", "__import__")
            and bindings_of_name(function.id, where) is None
            and node.args
        ):
            if function.id == "__import__":
                module = constant_or(node.args[0], None)
                return self._follow_import(module) if "." not in str(module) else None
            attribute = boxed_constant(node.args[1]) if len(node.args) > 1 else None
            base = self.resolved_name(node.args[0], where)
            if base and attribute and isinstance(attribute[0], str):
                return self._resolve_member(base, attribute[0])
            return None
        name = self.resolved_name(function, where)
        if name is not None and name.dotted in _IMPORTERS and not name.path:
            position = _IMPORTERS[name.dotted]
            given = boxed_constant(node.args[position]) if len(node.args) > position else None
            return self._follow_import(given[0]) if given else None
        return self._name_of_call_result(node, where, "") if name is None or name.is_definition else None

    def _name_of_call_result(self, call: ast.Call, where: Where, part: str) -> ResolvedName | None:
        """Return the name of the result of a function of the project, or of a part of the result."""
        other = self.name_of_imported_definition(call.func, where)
        if other:
            return self.project.name_of_result(other.path, other.dotted, part)
        function = self.function_definition(call.func, where)
        return function.names.name_of_result(function.node, part) if function else None

    def _resolve_from_star(self, name: str) -> ResolvedName | None:
        return (
            name_from_stars(name, [star.module for star in self.stars], self.project, self.path) if self.stars else None
        )


def needs_syntax_tree(binding: Binding) -> bool:
    """Return True if resolving a binding takes its expression, and so the tree of its module."""
    if binding.kind == "part":
        return isinstance(binding.node, ast.Call)
    return binding.kind == "value" and isinstance(binding.node, _NAMED)
