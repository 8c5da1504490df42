"""What an expression evaluates to, as far as the source tells.

Types are names: a TensorFlow class (``tensorflow.data.Dataset``, ``tensorflow.estimator.RunConfig``,
``tensorflow.keras.Model`` ...), one of npu_shim, an :class:`Instance` of a class of the project, or None
for "not known". All bindings that reach a use must agree; one unknown binding makes the whole unknown.
"""

from __future__ import annotations

import ast
import weakref
from typing import Iterable

from ..syntax.expressions import constant, is_none
from .call_sites import handed
from .model import Binding, Function, Where
from .resolver import Names, element
from .scopes import own_returns
from .tf_types import (
    ATTRIBUTES,
    CONFIG_PROTO,
    DATASET,
    ENTERED,
    ESTIMATOR,
    GRAPH,
    KERAS_OPTIMIZER,
    METHODS,
    MODEL,
    NPU_CONFIG,
    NPU_RUN_CONFIG,
    ONLY_DATASETS,
    OPTIMIZER,
    PREPARED,
    RUN_CONFIG,
    SESSION,
    SESSION_MANAGER,
    SUPERVISOR,
    TEST_CASE,
    TRANSFORMATIONS,
    inherited,
    made_by,
)

__all__ = [
    "CONFIG_PROTO",
    "DATASET",
    "ESTIMATOR",
    "GRAPH",
    "KERAS_OPTIMIZER",
    "MODEL",
    "NPU_CONFIG",
    "NPU_RUN_CONFIG",
    "OPTIMIZER",
    "PREPARED",
    "RUN_CONFIG",
    "SESSION",
    "SESSION_MANAGER",
    "SUPERVISOR",
    "TEST_CASE",
    "Instance",
    "Types",
]
_LOOP = "being inferred"


class Instance(str):
    """The type of the objects of a class of the project that is made from none of TensorFlow's."""

    owner: ast.ClassDef
    names: Names


class Types:
    """Types of the expressions of one module.

    Args:
        names: its names.
    """

    def __init__(self, names: Names) -> None:
        self._names_ref = weakref.ref(names)  # which hold these types
        names.types = self
        self._memo: dict[tuple[int, int], str | None] = {}
        self._asked: list[tuple[object, str]] = []  # the definitions being looked into
        self._arguments: dict[int, str | None] = {}
        self._instances: dict[ast.ClassDef, str] = {}
        self._functions: dict[ast.AST, Function] = {f.node: f for f in names.functions}
        self._as_datasets: set[tuple[int, str]] | None = None

    @property
    def _names(self) -> Names:
        return self._names_ref()  # type: ignore[return-value]

    def let_go(self) -> None:
        """Forget what was asked so far, with the modules that it is about."""
        self._memo.clear()
        self._arguments.clear()
        self._instances.clear()

    def of(self, node: ast.AST | None, where: Where) -> str | None:
        """The type of an expression at a place, or None."""
        found = self._of(node, where)
        return None if found == _LOOP else found

    def _of(self, node: ast.AST | None, where: Where) -> str | None:
        if node is None:
            return None
        key = (id(node), id(where.scope))
        if key in self._memo:
            return self._memo[key]
        self._memo[key] = _LOOP  # a name that depends on itself adds nothing to the join
        found: str | None = None
        if isinstance(node, ast.Call):
            found = self._call(node, where)
        elif isinstance(node, ast.Name):
            found = self._of_bindings(self._names.lookup(node.id, where) or ())
        elif isinstance(node, ast.Attribute):
            found = self._attribute(node, where)
        elif isinstance(node, ast.IfExp):
            found = _join([self._of(part, where) for part in (node.body, node.orelse) if not is_none(part)])
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            found = _join([self._of(part, where) for part in node.values if not is_none(part)])
        if found == _LOOP:
            del self._memo[key]
        else:
            self._memo[key] = found
        return found

    def _call(self, node: ast.Call, where: Where) -> str | None:
        found = made_by(self._names.resolve(node.func, where) or "")
        if found:
            return found
        definition = self._names.definition(node.func, where)
        if definition is None and isinstance(node.func, ast.Attribute):
            owner = self._of(node.func.value, where)
            if owner == _LOOP:
                return _LOOP
            if owner is None and node.func.attr == "apply" and self._transforms(node.args, where):
                return DATASET
            if not isinstance(owner, Instance):
                return METHODS.get((owner or "", node.func.attr))
            methods = owner.names.held(owner.owner, node.func.attr)
            if len(methods) == 1 and methods[0][0].kind == "def" and methods[0][0].node is not None:
                definition = methods[0][0].node, methods[0][1]
        return self._made_by_definition(definition, "") if definition else None

    def _transforms(self, arguments: list[ast.expr], where: Where) -> bool:
        """Whether a method gets what only a dataset takes, a transformation of tf.data."""
        return (
            len(arguments) == 1
            and isinstance(arguments[0], ast.Call)
            and self._names.resolve(arguments[0].func, where) in TRANSFORMATIONS
        )

    def _made_by_definition(self, definition: tuple[ast.AST, Names], part: str) -> str | None:
        node, names = definition
        if isinstance(node, ast.ClassDef):
            return names.types.instance(node) if not part else None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return names.types.result(node, part)
        return None

    def _of_bindings(self, bindings: Iterable[Binding]) -> str | None:
        # Nothing can be called on None: where a method is, the value is what else it may be.
        return _join([self.binding(b) for b in bindings if not (b.kind == "value" and is_none(b.node))])

    def binding(self, binding: Binding) -> str | None:
        """The type of what a binding of this module binds."""
        if binding.kind == "value":
            return self._of(binding.node, binding.where)
        if binding.kind == "arg":
            key = id(binding.node)
            if key not in self._arguments:
                self._arguments[key] = _LOOP
                self._arguments[key] = self._argument(binding)
            return self._arguments[key]
        if binding.kind == "part" and isinstance(binding.node, ast.Call):
            definition = self._names.definition(binding.node.func, binding.where)
            return self._made_by_definition(definition, binding.target) if definition else None
        if binding.kind == "with":
            found = self._of(binding.node, binding.where)
            return found if found in ENTERED else None
        project = self._names.project
        origin = project.origin(binding.target, self._names.path) if project and binding.kind == "import" else None
        return self._of_module(origin[0], origin[1][0]) if origin and len(origin[1]) == 1 else None

    def _of_module(self, path: str, name: str) -> str | None:
        """The type of what a module of the project binds."""
        if (path, name) in self._asked or self._names.project is None:
            return _LOOP
        module = self._names.project.module(path)
        if module is None:
            return None
        self._asked.append((path, name))
        try:
            return module.types._of_bindings(module.names.module.bindings.get(name, ()))
        finally:
            self._asked.pop()

    def _argument(self, binding: Binding) -> str | None:
        owner = self._names.first_argument_of(binding)
        if owner is not None:
            return self.instance(owner)
        function = self._functions.get(binding.where.scope.node)
        where = function.where if function else binding.where
        annotation = getattr(binding.node, "annotation", None)
        if annotation is not None:
            return self._annotated(annotation, where)
        if self._used_as_dataset(binding):
            return DATASET
        values = handed(binding, self._names)
        return _join([v.names.types._of(v.value, v.where) for v in values if not is_none(v.value)]) if values else None

    def _annotated(self, annotation: ast.AST, where: Where) -> str | None:
        text = constant(annotation)
        if text and isinstance(text[0], str):
            try:
                annotation = ast.parse(text[0], mode="eval").body
            except SyntaxError:
                return None
        if isinstance(annotation, ast.Subscript):
            if self._names.resolve(annotation.value, where) != "typing.Optional":
                return None
            annotation = (
                getattr(annotation.slice, "value", annotation.slice)
                if not isinstance(annotation.slice, ast.Attribute)
                else annotation.slice
            )
        name = self._names.resolve(annotation, where) or ""
        if name in (DATASET, SESSION, GRAPH, TEST_CASE, OPTIMIZER, KERAS_OPTIMIZER):
            return name
        if ":" in name or not name:
            definition = self._names.definition(annotation, where)
            return (
                self._made_by_definition(definition, "")
                if definition and isinstance(definition[0], ast.ClassDef)
                else None
            )
        return inherited(name)

    def _used_as_dataset(self, binding: Binding) -> bool:
        """Whether a parameter's function calls a method on it that only datasets have."""
        if self._as_datasets is None:
            self._as_datasets = set()
            for call in self._names.calls:
                root: ast.AST = call.node.func
                only = False
                while isinstance(root, (ast.Attribute, ast.Call)):
                    only = only or isinstance(root, ast.Attribute) and root.attr in ONLY_DATASETS
                    root = root.value if isinstance(root, ast.Attribute) else root.func
                if only and isinstance(root, ast.Name):
                    self._as_datasets.add((id(call.where.scope), root.id))
        return (id(binding.where.scope), getattr(binding.node, "arg", "")) in self._as_datasets

    def _attribute(self, node: ast.Attribute, where: Where) -> str | None:
        # self.model = tf.keras.Model(...) anywhere in the class
        owner = self._names.owner(node.value, where)
        if owner is None:
            base = self._names.spelled(node.value, where) or ""
            if base.startswith("/") and ":" not in base:
                return self._of_module(base, node.attr)
            found = self._of(node.value, where)
            if not isinstance(found, Instance):
                return _LOOP if found == _LOOP else ATTRIBUTES.get((found or "", node.attr))
            owner = found.owner, found.names
        held = owner[1].held(owner[0], node.attr)
        return _join([names.types.binding(b) for b, names in held if not (b.kind == "value" and is_none(b.node))])

    def instance(self, owner: ast.ClassDef) -> str:
        """The type of the objects of a class of this module."""
        if owner not in self._instances:
            kinds = {inherited(name) for name in self._names.ancestry(owner)} - {None}
            made: str | None = kinds.pop() if len(kinds) == 1 else None
            if made is None:
                number = list(self._names.class_scopes).index(owner)
                made = Instance("%s:%s:%d" % (self._names.path, owner.name, number))
                made.owner, made.names = owner, self._names
            self._instances[owner] = made
        return self._instances[owner]

    def result(self, function: ast.AST, part: str = "") -> str | None:
        """The type of what a function of this module returns.

        Args:
            function: the function.
            part: the place of an element where it returns tuples, as in ``1.0``; else empty.
        """
        if (function, part) in self._asked:
            return _LOOP
        self._asked.append((function, part))
        try:
            values = [
                (element(r.value, part), r)
                for r in own_returns(function)
                if r.value is not None and not is_none(r.value)
            ]
            return _join([self._of(value, self._names.places[r]) for value, r in values if not is_none(value)])
        finally:
            self._asked.pop()


def _join(types: Iterable[str | None]) -> str | None:
    """The one type that all have; those still being inferred do not count."""
    found = set(types)
    if found == {_LOOP}:
        return _LOOP
    found.discard(_LOOP)
    return found.pop() if len(found) == 1 else None
