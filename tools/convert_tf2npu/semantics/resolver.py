"""What a name is.

:meth:`Names.resolve` follows imports, aliases, assignments, attributes that the script sets and functions
of the project that return a module or class, from an expression to the dotted name of what it refers to.
Where the bindings that reach a use disagree, or one of them is not known, the answer is None: a rule then
leaves the code alone.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, Iterable, cast

from ..syntax.expressions import constant, is_none
from ..tf_api.canonical_names import canonical, home
from ..tf_api.npu_init_exports import STAR
from ..tf_api.v1_fate import V1, became, lifted
from .classes import Definitions
from .model import Binding, Where
from .scopes import own_returns

if TYPE_CHECKING:
    from ..project.project import Project
    from ..rules.compat_v1.lifting import Lift

_BUILTINS = frozenset(dir(builtins))
_NAMED = (ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.Subscript)
# Decorators under which a function still returns what its return statements say.
_TRANSPARENT = frozenset({"functools.lru_cache", "functools.cache", "functools.wraps"})
# Calls that import the module whose name they are given, and the place of that argument.
_IMPORTERS = {"importlib.import_module": 0, "tensorflow.python.util.lazy_loader.LazyLoader": 2}


class Names(Definitions):
    """All names of one module.

    Args:
        tree: the module.
        project: the files among which it stands, for names that it imports from them.
        path: its own file.
    """

    def __init__(self, tree: ast.Module, project: Project | None = None, path: str = "") -> None:
        super().__init__(tree, project, path)
        self.lift: Lift | None = None  # of a file that is lifted to tf.compat.v1
        self.by_name: frozenset[str] = frozenset()  # what becomes of the names that are lifted where they stand
        self._resolving: set[int] = set()
        self._followed: dict[str, str | None] = {}
        self._known: dict[ast.AST, str | None] = {}
        self._returns: dict[tuple[ast.AST, str], str | None] = {}

    def spelled(self, node: ast.AST, where: Where) -> str | None:
        """The dotted name an expression refers to, by the path the script took to it."""
        if isinstance(node, ast.Name):
            return self._name(node.id, self.lookup(node.id, where))
        if isinstance(node, (ast.Attribute, ast.Call)):
            if node not in self._known:
                self._known[node] = None  # of an expression that depends on itself
                self._known[node] = (
                    self._attribute(node, where) if isinstance(node, ast.Attribute) else self._of_call(node, where)
                )
            return self._known[node]
        if isinstance(node, ast.IfExp):
            return agreed({self.spelled(part, where) for part in (node.body, node.orelse) if not is_none(part)})
        if isinstance(node, ast.Subscript) and self.spelled(node.value, where) == "sys.modules":
            key = constant(getattr(node.slice, "value", node.slice)) or constant(node.slice)
            return self._imported(key[0]) if key else None
        return None

    def _name(self, word: str, bindings: list[Binding] | None) -> str | None:
        if bindings is None:
            return self._from_star(word)
        name = self._one(bindings)
        return self._unless_starred(name, word, bindings) if name and self.stars else name

    def _lifted(self, name: str | None) -> str | None:
        if name and self.lift:
            if name == V1 + ".compat.v1":
                return V1
            if self.by_name and name.startswith("tensorflow.") and became(name) in self.by_name:
                return lifted(name)
        return name

    def forget(self) -> None:
        """Take nothing for known of what was asked so far: a name means something else now."""
        self._known.clear()
        self._returns.clear()

    def exported(self, name: str) -> str | None:
        """What a module-level name is to the modules that import it."""
        bindings = self.module.bindings.get(name)
        return self._one(bindings) if bindings else self._from_star(name)

    def offers(self, name: str) -> bool:
        """Whether a star import of this module brings a name that it binds."""
        bindings = self.module.bindings.get("__all__", [])
        if len(bindings) == 1 and isinstance(bindings[0].node, (ast.List, ast.Tuple)):
            given = [constant(element) for element in bindings[0].node.elts]
            return (name,) in given or None in given
        return bool(bindings) or not name.startswith("_")

    def resolve(self, node: ast.AST, where: Where) -> str | None:
        """The canonical dotted name of what an expression refers to, or None.

        A call of TensorFlow's stands for nothing here: ``tf.Session`` has a name, ``tf.Session()`` has
        not.
        """
        name = self.spelled(node, where)
        return canonical(name) if name else None

    def _one(self, bindings: list[Binding]) -> str | None:
        if len(bindings) == 1:
            return self._binding_name(bindings[0])
        # Nothing can be had of None: where a name is used, it is what else it may be.
        return agreed({self._binding_name(b) for b in bindings if not (b.kind == "value" and is_none(b.node))})

    def _binding_name(self, binding: Binding) -> str | None:
        if binding.kind == "import":
            return self._imported(binding.target)
        if binding.kind in ("def", "class") and self.path and binding.where.scope is self.module:
            return "{}:{}".format(self.path, getattr(binding.node, "name", ""))
        if not is_named(binding):
            return None
        key = id(binding.node)
        if key in self._resolving:
            return None  # of a value that is made of the name itself
        self._resolving.add(key)
        try:
            if binding.kind == "part":
                return self._result(cast(ast.Call, binding.node), binding.where, binding.target)
            return self.spelled(cast(ast.AST, binding.node), binding.where)
        finally:
            self._resolving.discard(key)

    def _imported(self, module: object) -> str | None:
        if not isinstance(module, str):
            return None
        if module not in self._followed:
            self._followed[module] = self.project.follow(module, self.path) if self.project else module
        return self._followed[module]

    def _attribute(self, node: ast.Attribute, where: Where) -> str | None:
        value = node.value
        bindings = self.lookup(value.id, where) if isinstance(value, ast.Name) else None
        base = self._name(value.id, bindings) if isinstance(value, ast.Name) else self.spelled(value, where)
        if base and ":" not in base:
            name = self._lifted(self.project.attribute(base, node.attr) if self.project else base + "." + node.attr)
            set_here = [
                held.binding
                for held in self.attributes.get(node.attr, ())
                if self.spelled(held.target.value, held.binding.where) == base
            ]
            return agreed({name} | {self._binding_name(b) for b in set_here}) if set_here else name
        if bindings is not None and base is None and bindings[0].kind not in ("arg", "def", "class"):
            return None
        owner = self.owner(value, where)
        if owner is None:
            return None
        found: set[str | None] = set()
        for binding, names in owner[1].held(owner[0], node.attr):
            if not (binding.kind == "value" and is_none(binding.node)):
                found.add(names._binding_name(binding))
        return agreed(found)

    def _of_call(self, node: ast.Call, where: Where) -> str | None:
        function = node.func
        if (
            isinstance(function, ast.Name)
            and function.id in ("getattr", "__import__")
            and self.lookup(function.id, where) is None
            and node.args
        ):
            if function.id == "__import__":
                module = (constant(node.args[0]) or (None,))[0]
                return self._imported(module) if "." not in str(module) else None
            attribute = constant(node.args[1]) if len(node.args) > 1 else None
            base = self.spelled(node.args[0], where)
            if base and attribute and isinstance(attribute[0], str):
                return self.project.attribute(base, attribute[0]) if self.project else f"{base}.{attribute[0]}"
            return None
        name = self.spelled(function, where)
        if name in _IMPORTERS:
            given = constant(node.args[_IMPORTERS[name]]) if len(node.args) > _IMPORTERS[name] else None
            return self._imported(given[0]) if given else None
        return self._result(node, where, "") if name is None or ":" in name else None

    def _result(self, call: ast.Call, where: Where, part: str) -> str | None:
        """The name of what a function of the project returns, or of a part of that."""
        path, name = self.elsewhere(call.func, where)
        if name and self.project:
            return self.project.returned(path, name, part)
        found = self.definition(call.func, where)
        return found[1].returned(found[0], part) if found and isinstance(found[0], ast.FunctionDef) else None

    def returned(self, function: ast.FunctionDef, part: str) -> str | None:
        """The name of what a function of this module returns.

        Args:
            function: the function.
            part: the place of an element where it returns tuples, as in ``1.0``; else empty.
        """
        key = (function, part)
        if key not in self._returns:
            self._returns[key] = None  # of a function that calls itself
            if all(
                self.resolve(d.func if isinstance(d, ast.Call) else d, self.places[function]) in _TRANSPARENT
                for d in function.decorator_list
            ):
                values = [(element(r.value, part), r) for r in own_returns(function) if r.value is not None]
                self._returns[key] = agreed(
                    {
                        self.spelled(value, self.places[r]) if value is not None else None
                        for value, r in values
                        if not is_none(value) and not is_none(r.value)
                    }
                )
        return self._returns[key]

    def _from_star(self, name: str) -> str | None:
        return from_star(name, [star.module for star in self.stars], self.project, self.path) if self.stars else None

    def _unless_starred(self, name: str, word: str, bindings: list[Binding]) -> str | None:
        """A name of the module, unless a star import of the project that comes later binds it too."""
        if not self.project or any(b.where.scope is not self.module for b in bindings):
            return name
        last = max(getattr(b.where.statement, "lineno", 0) for b in bindings)
        found: set[str | None] = {name}
        for star in self.stars:
            module = self.project.files.find(star.module, self.path) if star.node.lineno > last else None
            if module and self.project.binds(module, word):
                found.add(self.project.starred(module, word))
        return agreed(found)


def element(node: ast.AST | None, part: str) -> ast.AST | None:
    """A part of a tuple by its place, as in ``1.0``; the whole for an empty place, None where there is no
    such part to be seen."""
    for index in part.split(".") if part else ():
        if (
            not isinstance(node, (ast.Tuple, ast.List))
            or len(node.elts) <= int(index)
            or any(isinstance(e, ast.Starred) for e in node.elts)
        ):
            return None
        node = node.elts[int(index)]
    return node


def from_star(name: str, stars: Iterable[str], project: Project | None, path: str) -> str | None:
    """What a name is that the star imports of a module bring, or None.

    Args:
        name: the name.
        stars: the modules from which everything is imported.
        project: the files among which the module stands.
        path: its own file.
    """
    if name in _BUILTINS:
        return None
    for star in stars:
        if canonical(star) == "npu_shim.npu_init" and name in STAR:
            return "tensorflow" if name == "tf" else "npu_shim.npu_init." + name
    known: set[str | None] = set()
    for star in stars:
        module = project.files.find(star, path) if project else None
        if module and project:
            found = project.starred(module, name)
            if found:
                known.add(found)
        elif star.split(".")[0] in ("tensorflow", "tensorflow_estimator"):
            known.add(star + "." + name)
        elif canonical(star) != "npu_shim.npu_init":
            known.add(None)  # what it brings is not known
    return known.pop() if len(known) == 1 else None


def is_named(binding: Binding) -> bool:
    """Whether it takes a module's tree to say what a binding makes a name."""
    if binding.kind == "part":
        return isinstance(binding.node, ast.Call)
    return binding.kind == "value" and isinstance(binding.node, _NAMED)


def agreed(found: set[str | None]) -> str | None:
    """The one name that all have, or None."""
    if len(found) > 1 and None not in found:
        # import tensorflow.compat.v1 as tf, or plain tensorflow where that fails: one thing
        if len({home(canonical(f)) for f in found if f}) == 1:
            return max(found, key=lambda f: len(f or ""))
    return found.pop() if len(found) == 1 else None
