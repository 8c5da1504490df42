"""Type inference for expressions, as far as the source shows their types.

A type is a :class:`Type`, an :class:`Instance` of a class of the project, or None for unknown. All bindings that reach
a use must agree; one unknown binding makes the result unknown.
"""

from __future__ import annotations

import ast
import weakref
from typing import Iterable, cast

from ..syntax.expressions import boxed_constant, index_of, is_none, tuple_element
from .call_sites import values_passed_to_parameter
from .loaded_datasets import AS_DATASET, LOAD, type_of_loaded
from .model import Binding, Function, Where
from .module_index import AnyType, ClassDefinition, Definition, Instance, Names, Types
from .scopes import own_returns
from .tf_types import (
    ANNOTATED,
    ATTRIBUTES,
    ENTERED,
    METHODS,
    ONLY_DATASETS,
    TRANSFORMATIONS,
    Type,
    type_of_result,
    type_of_subclass,
)


class TypeInference(Types):
    """Type inference for the expressions of one module.

    Args:
        names: name resolution in it; it owns this object.
    """

    def __init__(self, names: Names) -> None:
        self._names_ref = weakref.ref(names)
        names.types = self
        self._memo: dict[tuple[int, int], AnyType | None] = {}
        self._asked: list[tuple[object, str]] = []  # the definitions that are being inferred
        self._arguments: dict[int, AnyType | None] = {}
        self._instances: dict[ast.ClassDef, AnyType] = {}
        self._functions: dict[ast.AST, Function] = {f.node: f for f in names.functions}
        self._as_datasets: set[tuple[int, str]] | None = None

    @property
    def _names(self) -> Names:
        return self._names_ref()  # type: ignore[return-value]

    def forget_answers(self) -> None:
        self._memo.clear()
        self._arguments.clear()
        self._instances.clear()

    def type_of(self, node: ast.AST | None, where: Where) -> AnyType | None:
        kind = self.type_or_in_progress(node, where)
        return None if kind is Type.IN_PROGRESS else kind

    def type_or_in_progress(self, node: ast.AST | None, where: Where) -> AnyType | None:
        """Return :meth:`of`, or ``Type.IN_PROGRESS`` if the expression depends on itself."""
        if node is None:
            return None
        key = (id(node), id(where.scope))
        if key in self._memo:
            return self._memo[key]
        cuts = self._names.cuts
        self._memo[key] = Type.IN_PROGRESS  # a name that depends on itself adds nothing to the join
        kind: AnyType | None = None
        if isinstance(node, ast.Call):
            kind = self._type_of_call(node, where)
        elif isinstance(node, ast.Name):
            kind = self.common_type(self._names.bindings_of_name(node.id, where) or ())
        elif isinstance(node, ast.Attribute):
            kind = self._type_of_attribute(node, where)
        elif isinstance(node, ast.Subscript):
            kind = Type.DATASET if self.type_or_in_progress(node.value, where) is Type.DATASETS else None
        elif isinstance(node, ast.IfExp):
            kind = _common_type(
                [self.type_or_in_progress(part, where) for part in (node.body, node.orelse) if not is_none(part)]
            )
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            kind = _common_type([self.type_or_in_progress(part, where) for part in node.values if not is_none(part)])
        if kind is Type.IN_PROGRESS or self._names.cuts != cuts:
            del self._memo[key]
        else:
            self._memo[key] = kind
        return kind

    def _type_of_call(self, node: ast.Call, where: Where) -> AnyType | None:
        name = self._names.resolve(node.func, where) or ""
        kind = type_of_loaded(node) if name == LOAD else type_of_result(name)
        if kind:
            return kind
        definition = self._names.definition(node.func, where)
        if definition is None and isinstance(node.func, ast.Attribute):
            owner = self.type_or_in_progress(node.func.value, where)
            if owner is Type.IN_PROGRESS:
                return Type.IN_PROGRESS
            if owner is None and node.func.attr == "apply" and self._is_only_argument_transformation(node.args, where):
                return Type.DATASET
            if owner is Type.DATASET_BUILDER and node.func.attr == AS_DATASET:
                return type_of_loaded(node)
            if not isinstance(owner, Instance):
                return METHODS.get((owner, node.func.attr)) if owner else None
            methods = owner.names.attribute_bindings(owner.owner, node.func.attr)
            if len(methods) == 1 and methods[0].binding.kind == "def" and methods[0].binding.node is not None:
                definition = Definition(methods[0].binding.node, methods[0].names)
        if definition is None and isinstance(node.func, ast.Name):
            return _common_type(
                [self._type_returned_by_parameter(b) for b in self._names.bindings_of_name(node.func.id, where) or ()]
            )
        return self._type_of_definition_call(definition, "") if definition else None

    def _type_returned_by_parameter(self, binding: Binding) -> AnyType | None:
        """Return the type that a parameter returns by its annotation, as in ``Callable[..., tf.keras.Model]``."""
        annotation = getattr(binding.node, "annotation", None) if binding.kind == "arg" else None
        if not isinstance(annotation, ast.Subscript):
            return None
        function = self._functions.get(binding.where.scope.node)
        where = function.where if function else binding.where
        given = index_of(annotation)
        is_callable = self._names.resolve(annotation.value, where) in ("typing.Callable", "collections.abc.Callable")
        return self._type_of_annotation(given.elts[-1], where) if is_callable and isinstance(given, ast.Tuple) else None

    def _is_only_argument_transformation(self, arguments: list[ast.expr], where: Where) -> bool:
        """Return True if the one argument of a method is a transformation of tf.data, which only a dataset takes."""
        return (
            len(arguments) == 1
            and isinstance(arguments[0], ast.Call)
            and self._names.resolve(arguments[0].func, where) in TRANSFORMATIONS
        )

    def _type_of_definition_call(self, definition: Definition, part: str) -> AnyType | None:
        node, names = definition
        if isinstance(node, ast.ClassDef):
            return _inference(names).type_of_instance(node) if not part else None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _inference(names).type_of_function_result(node, part)
        return None

    def common_type(self, bindings: Iterable[Binding]) -> AnyType | None:
        """Return the one type that all of some bindings have, those of None left out."""
        # None has no methods: if one is called, the value is one of the others.
        return _common_type([self.type_of_binding(b) for b in bindings if not (b.kind == "value" and is_none(b.node))])

    def type_of_binding(self, binding: Binding) -> AnyType | None:
        """Return the type of what a binding of this module binds."""
        if binding.kind == "value":
            return self.type_or_in_progress(binding.node, binding.where)
        if binding.kind == "arg":
            key = id(binding.node)
            cuts = self._names.cuts
            if key not in self._arguments:
                self._arguments[key] = Type.IN_PROGRESS
                self._arguments[key] = self._type_of_argument(binding)
            return self._arguments[key] if self._names.cuts == cuts else self._arguments.pop(key)
        if binding.kind == "part" and isinstance(binding.node, ast.Call):
            if self._names.resolve(binding.node.func, binding.where) == LOAD:
                return type_of_loaded(binding.node, binding.target)
            definition = self._names.definition(binding.node.func, binding.where)
            return self._type_of_definition_call(definition, binding.target) if definition else None
        if binding.kind == "with":
            kind = self.type_or_in_progress(binding.node, binding.where)
            return kind if kind in ENTERED else None
        is_import = binding.kind == "import"
        origin = self._names.project.file_of_import(binding.target, self._names.path) if is_import else None
        return self._type_of_module_global(origin[0], origin[1][0]) if origin and len(origin[1]) == 1 else None

    def _type_of_module_global(self, path: str, name: str) -> AnyType | None:
        """Return the type of what a module of the project binds to a name."""
        if (path, name) in self._asked:
            return Type.IN_PROGRESS
        module = self._names.project.module(path)
        if module is None:
            return None
        self._asked.append((path, name))
        try:
            return _inference(module.names).common_type(module.names.module.bindings.get(name, ()))
        finally:
            self._asked.pop()

    def _type_of_argument(self, binding: Binding) -> AnyType | None:
        owner = self._names.first_argument_of(binding)
        if owner is not None:
            return self.type_of_instance(owner)
        function = self._functions.get(binding.where.scope.node)
        where = function.where if function else binding.where
        annotation = getattr(binding.node, "annotation", None)
        if annotation is not None:
            return self._type_of_annotation(annotation, where)
        if self._is_used_as_dataset(binding):
            return Type.DATASET
        values = values_passed_to_parameter(binding, self._names)
        return (
            _common_type(
                [_inference(v.names).type_or_in_progress(v.value, v.where) for v in values if not is_none(v.value)]
            )
            if values
            else None
        )

    def _type_of_annotation(self, annotation: ast.AST, where: Where) -> AnyType | None:
        text = boxed_constant(annotation)
        if text and isinstance(text[0], str):
            try:
                annotation = ast.parse(text[0], mode="eval").body
            except SyntaxError:
                return None
        if isinstance(annotation, ast.Subscript):
            if self._names.resolve(annotation.value, where) != "typing.Optional":
                return None
            annotation = index_of(annotation)
        name_of_class = self._names.resolved_name(annotation, where)
        if name_of_class is None or name_of_class.is_definition:
            its_class = self._names.class_definition(annotation, where)
            return self._type_of_definition_call(Definition(*its_class), "") if its_class else None
        name = self._names.resolve(annotation, where) or ""
        return ANNOTATED.get(name) or type_of_subclass(name)

    def _is_used_as_dataset(self, binding: Binding) -> bool:
        """Return True if a function calls a method on its parameter that only datasets have."""
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

    def _type_of_attribute(self, node: ast.Attribute, where: Where) -> AnyType | None:
        # self.model = tf.keras.Model(...) anywhere in the class
        owner = self._names.owner_class(node.value, where)
        if owner is None:
            base = self._names.resolved_name(node.value, where)
            if base and base.is_module_of_project:
                return self._type_of_module_global(base.path, node.attr)
            kind = self.type_or_in_progress(node.value, where)
            if kind is Type.IN_PROGRESS:
                return kind
            if not isinstance(kind, Instance):
                known = None if kind is None else ATTRIBUTES.get((kind, node.attr))
                return known or self.common_type(self._names.attribute_assignments(node, where))
            owner = ClassDefinition(kind.owner, kind.names)
        held = owner.names.attribute_bindings(owner.node, node.attr)
        if not held:
            return self.common_type(self._names.attribute_assignments(node, where))
        return _common_type(
            [_inference(names).type_of_binding(b) for b, names in held if not (b.kind == "value" and is_none(b.node))]
        )

    def type_of_instance(self, owner: ast.ClassDef) -> AnyType:
        """Return the type of the objects of a class of this module."""
        cuts = self._names.cuts
        if owner not in self._instances:
            kinds = {type_of_subclass(name) for name in self._names.outside_ancestors(owner)} - {None}
            kind: AnyType | None = kinds.pop() if len(kinds) == 1 else None
            if kind is None:
                kind = Instance(owner, self._names, list(self._names.class_scopes).index(owner))
            self._instances[owner] = kind
        return self._instances[owner] if self._names.cuts == cuts else self._instances.pop(owner)

    def type_of_function_result(self, function: ast.AST, part: str = "") -> AnyType | None:
        """Return the type of the result of a function of this module.

        Args:
            function: the function.
            part: the position of an element if it returns tuples, as in ``1.0``; else empty.
        """
        if (function, part) in self._asked:
            return Type.IN_PROGRESS
        self._asked.append((function, part))
        try:
            values = [
                (tuple_element(r.value, part), r)
                for r in own_returns(function)
                if r.value is not None and not is_none(r.value)
            ]
            return _common_type(
                [self.type_or_in_progress(value, self._names.places[r]) for value, r in values if not is_none(value)]
            )
        finally:
            self._asked.pop()


def _inference(names: Names) -> TypeInference:
    """Return the type inference of a module, which has the class of this one."""
    return cast(TypeInference, names.types)


def _common_type(types: Iterable[AnyType | None]) -> AnyType | None:
    """Return the one type that all have; types that are still being inferred do not count."""
    kinds = set(types)
    if kinds == {Type.IN_PROGRESS}:
        return Type.IN_PROGRESS
    kinds.discard(Type.IN_PROGRESS)
    return kinds.pop() if len(kinds) == 1 else None
