"""The interfaces between modules: name resolution and type inference of one module, and the index of all modules.

Resolution of a name may lead through other files of the project. The code in this package sees these files only by
:class:`ModuleIndex`; the package ``project`` implements it.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import Collection, NamedTuple, Pattern, Union

from ..syntax.expressions import boxed_constant
from ..syntax.source import Source
from ..tf_api.canonical_names import canonical_name, is_standalone_keras
from .model import Binding, Lift, Where
from .module_tables import ModuleTables
from .once import Once
from .resolved_name import ResolvedName
from .tf_types import Type


class Instance:
    """The type of the objects of a class of the project that derives from no class of TensorFlow.

    Attributes:
        owner: the class.
        names: the names of its module.
    """

    __slots__ = ("owner", "names", "_key")

    def __init__(self, owner: ast.ClassDef, names: Names, number: int) -> None:
        self.owner = owner
        self.names = names
        self._key = names.path, owner.name, number

    def __eq__(self, other: object) -> bool:  # a file may be read more than once
        return isinstance(other, Instance) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


AnyType = Union[Type, Instance]


class Definition(NamedTuple):
    """A function or class of the project, with the names of its module."""

    node: ast.AST
    names: Names


class ClassDefinition(NamedTuple):
    """A class of the project, with the names of its module."""

    node: ast.ClassDef
    names: Names


class FunctionDefinition(NamedTuple):
    """A function of the project, with the names of its module."""

    node: ast.FunctionDef
    names: Names


class HeldBinding(NamedTuple):
    """A binding of an attribute, with the names of the module that has it."""

    binding: Binding
    names: Names


class Types(ABC):
    """Type inference for the expressions of one module."""

    @abstractmethod
    def type_of(self, node: ast.AST | None, where: Where) -> AnyType | None:
        """Return the type of an expression at a place, or None."""

    @abstractmethod
    def forget_answers(self) -> None:
        """Forget all answers, with the modules that they refer to."""


class Names(ModuleTables, ABC):
    """Name resolution for one module: its tables, and the questions that rules ask.

    What ``once`` keeps must not refer to names.

    Attributes:
        keras_apart: True if the package keras is another one than tf.keras, as with TensorFlow 1.
        project: the index of the project.
        types: type inference for its expressions.
        lift: the plan for lifting it to tf.compat.v1, if it is lifted.
        by_name: the fates of the names that are lifted where they stand.
    """

    types: Types

    def __init__(self, tree: ast.Module, project: ModuleIndex, path: str, keras_apart: bool) -> None:
        super().__init__(tree, path)
        self.project, self.keras_apart = project, keras_apart
        self.lift: Lift | None = None
        self.by_name: frozenset[str] = frozenset()

    @property
    def cuts(self) -> int:
        """The cuts of the project."""
        return self.project.cuts

    @property
    def is_in_project(self) -> bool:
        """False for code without a file, and for a file that is not one of the run."""
        return self.path in self.project.paths

    @property
    def imported_files(self) -> frozenset[str]:
        """The other files of the project that this one imports, directly or not."""
        return self.project.with_imports(self.path) - {self.path}

    @property
    def importing_files(self) -> frozenset[str]:
        """The other files of the project that import this one, directly or not."""
        return self.project.with_importers({self.path}) - {self.path}

    def spelled_name(self, node: ast.AST, where: Where) -> str | None:
        """Return the text of :meth:`resolved_name`."""
        name = self.resolved_name(node, where)
        return name.text if name else None

    def resolve(self, node: ast.AST, where: Where) -> str | None:
        """Return the canonical dotted name of what an expression refers to, or None.

        The result of a TensorFlow call has no name: ``tf.Session`` has one, ``tf.Session()`` has none.
        """
        name = self.resolved_name(node, where)
        if name is None:
            return None
        return name.text if name.path else self._canonical(name.dotted)

    def _canonical(self, dotted: str) -> str:
        return dotted if self.keras_apart and is_standalone_keras(dotted) else canonical_name(dotted)

    def only_binding(self, node: ast.AST | None, where: Where, kind: str = "") -> Binding | None:
        """Return the binding of a variable that has one, of the kind if one is given; None for other expressions."""
        bindings = self.bindings_of_name(node.id, where) if isinstance(node, ast.Name) else None
        return bindings[0] if bindings and len(bindings) == 1 and kind in ("", bindings[0].kind) else None

    def class_definition(self, node: ast.AST, where: Where) -> ClassDefinition | None:
        """Return the one class of the project that an expression refers to."""
        defined = self.definition(node, where)
        return (
            ClassDefinition(defined.node, defined.names) if defined and isinstance(defined.node, ast.ClassDef) else None
        )

    def function_definition(self, node: ast.AST, where: Where) -> FunctionDefinition | None:
        """Return the one function of the project that an expression refers to."""
        defined = self.definition(node, where)
        if defined is None or not isinstance(defined.node, ast.FunctionDef):
            return None
        return FunctionDefinition(defined.node, defined.names)

    def star_exports(self, name: str) -> bool:
        """Return True if a star import of this module exports a name that it binds."""
        bindings = self.module.bindings.get("__all__", [])
        if len(bindings) == 1 and isinstance(bindings[0].node, (ast.List, ast.Tuple)):
            given = [boxed_constant(element) for element in bindings[0].node.elts]
            return (name,) in given or None in given
        return bool(bindings) or not name.startswith("_")

    @abstractmethod
    def resolved_name(self, node: ast.AST, where: Where) -> ResolvedName | None:
        """Return what an expression refers to, by the path that the script takes to it; None if that is unknown."""

    @abstractmethod
    def name_for_importers(self, name: str) -> ResolvedName | None:
        """Return what a module-level name is to the modules that import it."""

    @abstractmethod
    def name_of_result(self, function: ast.FunctionDef, part: str) -> ResolvedName | None:
        """Return the name of the result of a function of this module.

        Args:
            function: the function.
            part: the position of an element if it returns tuples, as in ``1.0``; else empty.
        """

    @abstractmethod
    def definition(self, node: ast.AST, where: Where) -> Definition | None:
        """Return the one function or class of the project that an expression refers to."""

    @abstractmethod
    def owner_class(self, node: ast.AST, where: Where) -> ClassDefinition | None:
        """Return the class whose attributes an expression has: ``self``, ``cls``, or a class."""

    @abstractmethod
    def attribute_bindings(self, owner: ast.ClassDef, name: str) -> list[HeldBinding]:
        """Return the bindings of an attribute of a class of this module, in the class or its bases."""

    @abstractmethod
    def outside_ancestors(self, owner: ast.ClassDef) -> frozenset[str]:
        """Return the names of the classes outside the project that a class of this module derives from."""

    @abstractmethod
    def forget_resolved_names(self) -> None:
        """Forget the resolved names, because a name now means something else."""

    @abstractmethod
    def forget_answers(self) -> None:
        """Forget all answers that refer to other modules."""


class Module(NamedTuple):
    """One file after analysis."""

    path: str
    source: Source
    names: Names
    types: Types


class ModuleIndex(Once, ABC):
    """The modules of a project, as name resolution sees them.

    Attributes:
        cuts: the number of answers that modules which import each other cut short. What is found meanwhile is not kept.
    """

    cuts: int

    @property
    @abstractmethod
    def paths(self) -> Collection[str]:
        """The absolute paths of the files."""

    @abstractmethod
    def raw(self, path: str) -> bytes:
        """Return the bytes of a file; nothing if it cannot be read."""

    @abstractmethod
    def given_tf_version(self, path: str) -> str:
        """Return the version of TensorFlow, ``1`` or ``2``, that the user gives for a file, or the empty string."""

    @abstractmethod
    def module(self, path: str) -> Module | None:
        """Return the module of a file of the project; None if it cannot be read."""

    @abstractmethod
    def file_of_module(self, module: str, importer: str) -> str | None:
        """Return the file of a module by its dotted name, as another file imports it."""

    @abstractmethod
    def file_of_import(self, dotted: str, importer: str) -> tuple[str, list[str]] | None:
        """Return the file that an imported name comes from and the rest of the name; None outside the project."""

    @abstractmethod
    def resolve_import(self, dotted: str, importer: str) -> ResolvedName | None:
        """Return what an imported name refers to.

        Args:
            dotted: the imported name, as in ``.compat.tf`` for ``from .compat import tf``.
            importer: the path of the importing file.
        """

    @abstractmethod
    def resolve_attribute(self, base: ResolvedName, name: str) -> ResolvedName | None:
        """Return what an attribute of a resolved name refers to."""

    @abstractmethod
    def outside_ancestors(self, path: str, name: str) -> frozenset[str]:
        """Return the names of the classes outside the project that a class of a module derives from."""

    @abstractmethod
    def name_of_result(self, path: str, name: str, part: str) -> ResolvedName | None:
        """Return the name of the result of a function of a module, see :meth:`Names.name_of_result`."""

    @abstractmethod
    def direct_importers(self, path: str) -> tuple[str, ...]:
        """Return the files that import a file themselves."""

    @abstractmethod
    def with_importers(self, paths: Collection[str]) -> frozenset[str]:
        """Return the files that import one of some files, directly or not, and these files."""

    @abstractmethod
    def with_imports(self, path: str) -> frozenset[str]:
        """Return the files that a file imports, directly or not, and this file."""

    @abstractmethod
    def names_imported_from(self, path: str) -> frozenset[str]:
        """Return the names that other files may import from a file; ``*`` for all."""

    @abstractmethod
    def may_concern_rules(self, raw: bytes, path: str = "", on_objects: Pattern[bytes] | None = None) -> bool:
        """Return True if a file can contain something for a rule.

        Args:
            raw: its bytes.
            path: its path.
            on_objects: what a file contains if a rule that acts on objects can act on it; any file, if None.
        """
