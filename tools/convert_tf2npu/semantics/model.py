"""What a walk over a module records: its scopes, what binds names in them, and where calls and functions stand."""

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

    Scopes belong to the names of their module. A place only points to its scope, because what is bound in a scope has
    places in it: a circle, that only the garbage collector would take apart.
    """

    scope_ref: Callable[[], Scope | None]
    path: Path
    statement: ast.stmt | None

    @property
    def scope(self) -> Scope:
        """The scope."""
        return self.scope_ref()  # type: ignore[return-value]


class Binding(NamedTuple):
    """One thing that binds a name or an attribute.

    ``kind`` is ``import`` (``target`` is the dotted name), ``value`` (``node`` is the expression
    assigned), ``part`` (``node`` is an expression that is unpacked, ``target`` the place in it, as in
    ``1.0`` for ``b`` of ``a, (b, c) = node``), ``with`` (``node`` is the expression entered), ``def``,
    ``class``, ``arg`` (``node`` is the definition) or ``other`` (a loop variable, ``del`` ...: not
    followed).
    """

    kind: str
    where: Where
    node: ast.AST | None = None
    target: str = ""


class Held(NamedTuple):
    """What an assignment puts into an attribute."""

    target: ast.Attribute
    binding: Binding


class Star(NamedTuple):
    """A star import."""

    module: str
    node: ast.ImportFrom


class Call(NamedTuple):
    """A call and the place where it stands."""

    node: ast.Call
    where: Where


class Function(NamedTuple):
    """A function or lambda, the place of its definition, and its own scope."""

    node: FunctionNode
    where: Where
    scope: Scope
