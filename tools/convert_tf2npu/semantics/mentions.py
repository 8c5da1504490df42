"""Where a function, a method, or a function inside another one is called or handed on, in all files."""

from __future__ import annotations

import ast
import re
from itertools import chain
from typing import Iterable, Iterator, NamedTuple

from .call_sites import Called, means, users
from .model import Where
from .resolver import Names


class Mention(NamedTuple):
    """Where a function may be meant: the name or attribute, its place, the names of its module."""

    node: ast.AST
    where: Where
    names: Names


def mentions(function: ast.FunctionDef, names: Names) -> list[Mention] | None:
    """Where a function of the project is called or handed on, as far as names tell.

    What may be a method of another class that has the same name is among them.

    Args:
        function: a function, a method, or a function inside another one.
        names: of its module.

    Returns:
        None where a file that may use it cannot be read.
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
            exact = of_class or isinstance(node, ast.Name) or user.spelled(node, where) is not None
            if exact and means(node, where, user, called):
                found.append(Mention(node, where, user))
    return found


def _that_know(names: Names, word: str) -> Iterator[Names | None]:
    """The other modules that import a module, by whatever way, and hold a word as an attribute, one after the other,
    for all of them may not fit into memory; None for one that cannot be read."""
    project = names.project
    if project is None or names.path not in project.paths:
        return
    from ..project.import_graph import bringing  # which stands on projects, as these stand on names

    literal = word.encode("utf-8")
    attribute = re.compile(rb"\.\s*%s\b" % re.escape(literal))
    others = bringing(project, [names.path])
    for path in project.paths:
        raw = project.raw(path) if path != names.path and path in others else b""
        if literal in raw and attribute.search(raw):
            module = project.module(path)
            yield module.names if module else None
