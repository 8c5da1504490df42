"""Mentions: the expressions in all files that call a function or pass it to other code."""

from __future__ import annotations

import ast
import re
from itertools import chain
from typing import Iterable, Iterator, NamedTuple

from .call_sites import Called, means, users
from .model import Where
from .module_index import Names


class Mention(NamedTuple):
    """An expression that may refer to a function: the name or attribute, its place, the names of its module."""

    node: ast.AST
    where: Where
    names: Names


def mentions(function: ast.FunctionDef, names: Names) -> list[Mention] | None:
    """Return the expressions that call a function of the project or pass it to other code, as far as names show.

    Methods of other classes that have the same name are among them.

    Args:
        function: a function, a method, or a function inside another one.
        names: of its module.

    Returns:
        the mentions; None if a file that may use the function cannot be read.
    """
    parent = names.parents.get(function)
    of_class = isinstance(parent, ast.ClassDef)
    others: Iterable[Names | None] | None = ()
    if of_class:
        others = _that_know(names, function.name)
    elif parent is names.tree:
        others = users(names, function.name)
    if others is None:
        return None
    called = Called(function, function, names)
    found: list[Mention] = []
    for user in chain([names], others):
        if user is None:
            return None
        for node in user.mentions(function.name):
            if function in user.ancestors(node) or of_class and isinstance(node, ast.Name):
                continue  # it calls itself; or a bare name, which is no method
            where = user.place(user.parents[node] if isinstance(user.parents[node], ast.Call) else node)
            exact = of_class or isinstance(node, ast.Name) or user.named(node, where) is not None
            if exact and means(node, where, user, called):
                found.append(Mention(node, where, user))
    return found


def _that_know(names: Names, word: str) -> Iterator[Names | None]:
    """Yield the other modules that import a module, directly or not, and read an attribute of a name; None for one that
    cannot be read. All of them together may not fit into memory."""
    project = names.project
    if project is None or names.path not in project.paths:
        return
    literal = word.encode("utf-8")
    attribute = re.compile(rb"\.\s*%s\b" % re.escape(literal))
    others = project.bringing([names.path])
    for path in project.paths:
        raw = project.raw(path) if path != names.path and path in others else b""
        if literal in raw and attribute.search(raw):
            module = project.module(path)
            yield module.names if module else None
