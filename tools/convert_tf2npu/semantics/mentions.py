"""Mentions: the expressions in all files that call a function or pass it to other code."""

from __future__ import annotations

import ast
import re
from itertools import chain
from typing import Iterable, Iterator, NamedTuple

from .call_sites import Called, may_be_method, may_refer_to, modules_using
from .model import Where
from .module_index import Instance, Names


class Mention(NamedTuple):
    """An expression that may refer to a function: the name or attribute, its place, the names of its module."""

    node: ast.AST
    where: Where
    names: Names


def mentions_of_function(function: ast.FunctionDef, names: Names, of_objects: bool = False) -> list[Mention] | None:
    """Return the expressions that call a function of the project or pass it to other code, as far as names show.

    Methods of other classes that have the same name are among them.

    Args:
        function: a function, a method, or a function inside another one.
        names: of its module.
        of_objects: True to take a method of a parameter or a local object for the method, unless it is of another
            class.

    Returns:
        the mentions; None if a file that may use the function cannot be read.
    """
    parent = names.parents.get(function)
    of_class = isinstance(parent, ast.ClassDef)
    others: Iterable[Names | None] | None = ()
    if of_class:
        others = _modules_reading_attribute(names, function.name)
    elif parent is names.tree:
        others = modules_using(names, function.name)
    if others is None:
        return None
    called = Called(function, function, names)
    calls_and_uses: list[Mention] = []
    for user in chain([names], others):
        if user is None:
            return None
        for node in user.mentions(function.name):
            if function in user.ancestors(node) or of_class and isinstance(node, ast.Name):
                continue  # it calls itself; or a bare name, which is no method
            where = user.place(user.parents[node] if isinstance(user.parents[node], ast.Call) else node)
            exact = of_class or isinstance(node, ast.Name) or user.resolved_name(node, where) is not None
            is_method = of_objects and of_class and may_be_method(node, where, user, called)
            if exact and (is_method or may_refer_to(node, where, user, called)):
                calls_and_uses.append(Mention(node, where, user))
    return calls_and_uses


def reads_of_assigned_name(target: ast.Name, names: Names) -> list[Mention] | None:
    """Return the reads of a name that may have the value that a statement assigns to it, in all files.

    Args:
        target: the name in the statement.
        names: of its module.

    Returns:
        the reads; None if a file that may read it cannot be read.
    """
    where = names.place(target)
    is_global = where.scope is names.module or target.id in where.scope.elsewhere
    scope = names.module if is_global else where.scope
    reads = []
    for node in names.mentions(target.id, scope.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            place = _place_of_mention(node, names)
            if any(b.where.statement is where.statement for b in names.bindings_of_name(target.id, place) or ()):
                reads.append(Mention(node, place, names))
    others = modules_using(names, target.id) if is_global else ()
    if others is None:
        return None
    for user in others:
        for node in user.mentions(target.id):
            place = _place_of_mention(node, user)
            if _reads_global_of_module(node, place, user, target.id, names.path):
                reads.append(Mention(node, place, user))
    return reads


def _reads_global_of_module(node: ast.AST, where: Where, names: Names, name: str, module_path: str) -> bool:
    """Return True if a name or an attribute reads a global of another module of the project."""
    if isinstance(node, ast.Attribute):
        base = names.resolved_name(node.value, where)
        return base is not None and base.is_module_of_project and base.path == module_path
    bindings = names.bindings_of_name(name, where) or ()
    return any(
        b.kind == "import" and names.project.file_of_import(b.target, names.path) == (module_path, [name])
        for b in bindings
    )


def reads_of_assigned_attribute(target: ast.Attribute, names: Names) -> Iterator[Mention | None]:
    """Yield the reads of an attribute that a method assigns to, in all files; None for one of an unknown object."""
    owner = names.owner_class(target.value, names.place(target))
    if owner is None:
        yield None
        return
    for user in chain([names], _modules_reading_attribute(names, target.attr)):
        if user is None:
            yield None
            continue
        for node in user.mentions(target.attr):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            place = _place_of_mention(node, user)
            known = user.owner_class(node.value, place)
            kind = user.types.type_of(node.value, place) if known is None else None
            if known is None and not isinstance(kind, Instance):
                is_other = kind is not None or user.resolved_name(node.value, place) is not None
                yield from () if is_other else [None]
                continue
            theirs, holder = (known.names, known.node) if known else (kind.names, kind.owner)  # type: ignore[union-attr]
            if any(
                held.names.path == names.path
                and getattr(held.binding.where.statement, "lineno", 0) == _line_of_statement(target, names)
                for held in theirs.attribute_bindings(holder, target.attr)
            ):
                yield Mention(node, place, user)


def _line_of_statement(node: ast.AST, names: Names) -> int:
    """Return the line of the statement around an expression; a file may be read more than once."""
    return getattr(names.place(node).statement, "lineno", -1)


def _place_of_mention(node: ast.AST, names: Names) -> Where:
    parent = names.parents[node]
    return names.place(parent if isinstance(parent, ast.Call) else node)


def _modules_reading_attribute(names: Names, word: str) -> Iterator[Names | None]:
    """Yield the other modules that import a module, directly or not, and read an attribute of a name; None for one that
    cannot be read. All of them together may not fit into memory."""
    project = names.project
    literal = word.encode("utf-8")
    attribute = re.compile(rb"\.\s*%s\b" % re.escape(literal))
    importing = names.importing_files
    for path in project.paths if importing else ():
        raw = project.raw(path) if path in importing else b""
        if literal in raw and attribute.search(raw):
            module = project.module(path)
            yield module.names if module else None
