"""The data of name resolution: scopes, bindings, places, calls, functions, and the plan for lifting a file."""

from __future__ import annotations

import ast
import weakref
from typing import Callable, NamedTuple, Tuple, Union

FunctionNode = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp})
# A statement's place in its scope: (block number, index in the block, is the block a loop's body)
Path = Tuple[Tuple[int, int, bool], ...]


class Scope:
    """A module, class, function, lambda or comprehension."""

    __slots__ = ("node", "parent", "is_class", "is_comprehension", "ref", "bindings", "elsewhere", "__weakref__")

    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.is_class = type(node) is ast.ClassDef
        self.is_comprehension = type(node) in COMPREHENSIONS
        self.ref = weakref.ref(self)
        self.bindings: dict[str, list[Binding]] = {}
        self.elsewhere: dict[str, str] = {}  # names declared global or nonlocal


class Where(NamedTuple):
    """The place of a statement: its scope, its path there, the innermost statement.

    A module's names own its scopes. A place has only a weak reference to its scope: a scope holds bindings, and these
    hold places, so a strong reference would make a cycle that keeps a module in memory until the garbage collector
    runs.
    """

    scope_ref: Callable[[], Scope | None]
    path: Path
    statement: ast.stmt | None

    @property
    def scope(self) -> Scope:
        """The scope."""
        return self.scope_ref()  # type: ignore[return-value]


class Binding(NamedTuple):
    """One binding of a name or an attribute.

    ``kind`` is one of

    * ``import``: ``target`` is the dotted name;
    * ``value``: ``node`` is the assigned expression;
    * ``part``: ``node`` is an expression that is unpacked, ``target`` the position in it, as in ``1.0`` for ``b`` of
      ``a, (b, c) = node``;
    * ``with``: ``node`` is the expression of the with statement;
    * ``def``, ``class``, ``arg``: ``node`` is the definition;
    * ``other``: a loop variable, ``del`` and the like, which resolution does not follow.
    """

    kind: str
    where: Where
    node: ast.AST | None = None
    target: str = ""


class Held(NamedTuple):
    """An assignment to an attribute."""

    target: ast.Attribute
    binding: Binding


class Star(NamedTuple):
    """A star import."""

    module: str
    node: ast.ImportFrom


class Call(NamedTuple):
    """A call and its place."""

    node: ast.Call
    where: Where


class Function(NamedTuple):
    """A function or lambda, the place of its definition, and its own scope."""

    node: FunctionNode
    where: Where
    scope: Scope


class Lift(NamedTuple):
    """The plan for lifting a file to tf.compat.v1.

    Attributes:
        statements: the imports that import from ``tensorflow.compat.v1`` instead.
        star: the star import after which ``tf`` is imported, because it exports the plain one.
        instead: the import directly before ``star`` that is removed, because ``star`` replaces it.
        parts: the import of parts of TensorFlow after which ``tf`` is imported, because these parts move there.
    """

    statements: tuple[ast.stmt, ...] = ()
    star: Star | None = None
    instead: ast.stmt | None = None
    parts: ast.stmt | None = None
