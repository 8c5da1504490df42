"""The interfaces between modules: name resolution and type inference of one module, and the index of all modules.

Resolution of a name may lead through other files of the project. The code in this package sees these files only by
:class:`ModuleIndex`; the package ``project`` implements it.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import Collection, Iterable, Iterator, NamedTuple, Pattern, Union

from ..syntax.source import Source
from .model import Binding, Call, Function, Held, Lift, Scope, Star, Where
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


class HeldBinding(NamedTuple):
    """A binding of an attribute, with the names of the module that has it."""

    binding: Binding
    names: Names


class Types(ABC):
    """Type inference for the expressions of one module."""

    @abstractmethod
    def of(self, node: ast.AST | None, where: Where) -> AnyType | None:
        """Return the type of an expression at a place, or None."""

    @abstractmethod
    def inferred(self, node: ast.AST | None, where: Where) -> AnyType | None:
        """Return :meth:`of`, or ``Type.IN_PROGRESS`` if the expression depends on itself."""

    @abstractmethod
    def binding(self, binding: Binding) -> AnyType | None:
        """Return the type of what a binding of this module binds."""

    @abstractmethod
    def joined(self, bindings: Iterable[Binding]) -> AnyType | None:
        """Return the one type that all of some bindings have, those of None left out."""

    @abstractmethod
    def instance(self, owner: ast.ClassDef) -> AnyType:
        """Return the type of the objects of a class of this module."""

    @abstractmethod
    def result(self, function: ast.AST, part: str = "") -> AnyType | None:
        """Return the type of the result of a function of this module.

        Args:
            function: the function.
            part: the position of an element if it returns tuples, as in ``1.0``; else empty.
        """

    @abstractmethod
    def let_go(self) -> None:
        """Forget all answers, with the modules that they refer to."""


class Names(Once, ABC):
    """Name resolution for one module: the tables of the walk over it, and the questions that rules ask.

    What ``once`` keeps must not refer to names.

    Attributes:
        tree: the module.
        path: its file; empty for code without a file.
        keras_apart: True if the package keras is another one than tf.keras, as with TensorFlow 1.
        project: the index of the project, if there is one.
        types: type inference for its expressions.
        lift: the plan for lifting it to tf.compat.v1, if it is lifted.
        by_name: the fates of the names that are lifted where they stand.
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

    tree: ast.Module
    path: str
    keras_apart: bool
    project: ModuleIndex | None
    types: Types
    lift: Lift | None
    by_name: frozenset[str]
    calls: list[Call]
    reads: list[tuple[ast.Name, Where]]
    strings: dict[ast.AST, ast.AST]
    functions: list[Function]
    classes: list[tuple[ast.ClassDef, Where]]
    class_scopes: dict[ast.ClassDef, Scope]
    attributes: dict[str, list[Held]]
    stars: list[Star]
    parents: dict[ast.AST, ast.AST]
    places: dict[ast.AST, Where]
    module: Scope

    @abstractmethod
    def named(self, node: ast.AST, where: Where) -> ResolvedName | None:
        """Return what an expression refers to, by the path that the script takes to it; None if that is unknown."""

    @abstractmethod
    def spelled(self, node: ast.AST, where: Where) -> str | None:
        """Return the text of :meth:`named`."""

    @abstractmethod
    def resolve(self, node: ast.AST, where: Where) -> str | None:
        """Return the canonical dotted name of what an expression refers to, or None.

        The result of a TensorFlow call has no name: ``tf.Session`` has one, ``tf.Session()`` has none.
        """

    @abstractmethod
    def binding_name(self, binding: Binding) -> ResolvedName | None:
        """Return what a binding of this module binds its name to."""

    @abstractmethod
    def exported(self, name: str) -> ResolvedName | None:
        """Return what a module-level name is to the modules that import it."""

    @abstractmethod
    def offers(self, name: str) -> bool:
        """Return True if a star import of this module exports a name that it binds."""

    @abstractmethod
    def returned(self, function: ast.FunctionDef, part: str) -> ResolvedName | None:
        """Return the name of the result of a function of this module.

        Args:
            function: the function.
            part: the position of an element if it returns tuples, as in ``1.0``; else empty.
        """

    @abstractmethod
    def lookup(self, name: str, where: Where) -> list[Binding] | None:
        """Return the bindings of a name that can reach a place; None if nothing binds it."""

    @abstractmethod
    def definition(self, node: ast.AST, where: Where) -> Definition | None:
        """Return the one function or class of the project that an expression refers to."""

    @abstractmethod
    def elsewhere(self, node: ast.AST, where: Where) -> ResolvedName | None:
        """Return the name of a definition in another module that an expression refers to."""

    @abstractmethod
    def owner(self, node: ast.AST, where: Where) -> ClassDefinition | None:
        """Return the class whose attributes an expression has: ``self``, ``cls``, or a class."""

    @abstractmethod
    def first_argument_of(self, binding: Binding) -> ast.ClassDef | None:
        """Return the class of the method whose first argument (as a rule ``self`` or ``cls``) a binding is."""

    @abstractmethod
    def held(self, owner: ast.ClassDef, name: str) -> list[HeldBinding]:
        """Return the bindings of an attribute of a class of this module, in the class or its bases."""

    @abstractmethod
    def assigned(self, node: ast.Attribute, where: Where) -> list[Binding]:
        """Return what this module assigns to an attribute of a variable, as in ``tf.model = Sequential()``."""

    @abstractmethod
    def ancestry(self, owner: ast.ClassDef) -> frozenset[str]:
        """Return the names of the classes outside the project that a class of this module derives from."""

    @abstractmethod
    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first."""

    @abstractmethod
    def mentions(self, word: str, inside: ast.AST | None = None) -> list[ast.AST]:
        """Return the expressions that read a name or an attribute of that name.

        Args:
            word: the name.
            inside: the node of a scope, to return only those in it or in a scope in it.
        """

    @abstractmethod
    def key(self, call: ast.Call) -> tuple[str, int]:
        """Return the file of a call of this module and its number there, the same each time the file is read."""

    @abstractmethod
    def place(self, node: ast.AST) -> Where:
        """Return the place of an expression; for a non-call inside a lambda, the place of the statement."""

    @abstractmethod
    def forget(self) -> None:
        """Forget the resolved names, because a name now means something else."""

    @abstractmethod
    def let_go(self) -> None:
        """Forget all answers that refer to other modules."""


class Module(NamedTuple):
    """One file after analysis."""

    path: str
    source: Source
    names: Names
    types: Types


class ModuleIndex(Once, ABC):
    """The modules of a project, as name resolution sees them."""

    @property
    @abstractmethod
    def paths(self) -> Collection[str]:
        """The absolute paths of the files."""

    @property
    @abstractmethod
    def fixed(self) -> frozenset[str]:
        """The absolute paths of the files that stay unchanged."""

    @abstractmethod
    def raw(self, path: str) -> bytes:
        """Return the bytes of a file; nothing if it cannot be read."""

    @abstractmethod
    def said_version(self, path: str) -> str:
        """Return the version of TensorFlow, ``1`` or ``2``, that the user gives for a file, or the empty string."""

    @abstractmethod
    def module(self, path: str) -> Module | None:
        """Return the module of a file of the project; None if it cannot be read."""

    @abstractmethod
    def find(self, module: str, importer: str) -> str | None:
        """Return the file of a module by its dotted name, as another file imports it."""

    @abstractmethod
    def origin(self, dotted: str, importer: str) -> tuple[str, list[str]] | None:
        """Return the file that an imported name comes from and the rest of the name; None outside the project."""

    @abstractmethod
    def follow(self, dotted: str, importer: str) -> ResolvedName | None:
        """Return what an imported name refers to.

        Args:
            dotted: the imported name, as in ``.compat.tf`` for ``from .compat import tf``.
            importer: the path of the importing file.
        """

    @abstractmethod
    def attribute(self, base: ResolvedName, name: str) -> ResolvedName | None:
        """Return what an attribute of a resolved name refers to."""

    @abstractmethod
    def starred(self, path: str, name: str) -> ResolvedName | None:
        """Return what a star import of a module binds a name to; None if it does not bind it."""

    @abstractmethod
    def binds(self, path: str, name: str) -> bool:
        """Return True if a star import of a module certainly binds a name."""

    @abstractmethod
    def ancestry(self, path: str, name: str) -> frozenset[str]:
        """Return the names of the classes outside the project that a class of a module derives from."""

    @abstractmethod
    def returned(self, path: str, name: str, part: str) -> ResolvedName | None:
        """Return the name of the result of a function of a module, see :meth:`Names.returned`."""

    @abstractmethod
    def importers(self, path: str) -> tuple[str, ...]:
        """Return the files that import a file themselves."""

    @abstractmethod
    def bringing(self, paths: Collection[str]) -> frozenset[str]:
        """Return the files that import one of some files, directly or not, and these files."""

    @abstractmethod
    def reached(self, path: str) -> frozenset[str]:
        """Return the files that a file imports, directly or not, and this file."""

    @abstractmethod
    def taken(self, path: str) -> frozenset[str]:
        """Return the names that other files may import from a file; ``*`` for all."""

    @abstractmethod
    def concerns(self, raw: bytes, path: str = "", on_objects: Pattern[bytes] | None = None) -> bool:
        """Return True if a file can contain something for a rule.

        Args:
            raw: its bytes.
            path: its path.
            on_objects: what a file contains if a rule that acts on objects can act on it; any file, if None.
        """
