"""The values that a file feeds to its placeholders, by the names that these have, and the feeds in other files."""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..semantics.mentions import reads_of_assigned_attribute
from ..semantics.module_index import Names
from ..semantics.value_flow import origins
from ..syntax.expressions import boxed_constant, index_of, last_name

_WORDS = re.compile(rb"feed|\.\s*run\b|\.\s*eval\b|make_callable|placeholder|__main__")


def may_feed(raw: bytes) -> bool:
    """Return True if a file may make or feed placeholders, or start what feeds them."""
    return bool(_WORDS.search(raw))


def fed_values(context: Context, placeholder: ast.AST) -> list[ast.expr]:
    """Return the values that the file feeds to a placeholder: of a dictionary, or assigned to a key of one.

    Args:
        context: the file.
        placeholder: the call that makes it.
    """
    parent = context.names.parents.get(placeholder)
    targets = [target for target in parent.targets if last_name(target)] if isinstance(parent, ast.Assign) else []
    return [
        value
        for target in targets
        for key, value in context.names.once(_pairs_by_name).get(last_name(target), ())
        if isinstance(key, ast.Attribute) or _may_be_same_placeholder(placeholder, key, context.names)
    ]


def _may_be_same_placeholder(placeholder: ast.AST, key: ast.expr, names: Names) -> bool:
    """Return False for a name that is something else where it is a key, as a loop variable or another placeholder."""
    for origin in origins(key, names.place(key), names):
        node = origin.node
        if node is placeholder or isinstance(node, (ast.Attribute, ast.Subscript)):
            return True
        if isinstance(node, ast.Call) and origin.resolve() is None:
            return True
        if isinstance(node, ast.Name):
            bindings = origin.names.bindings_of_name(node.id, origin.names.place(node)) or ()
            if not bindings or any(binding.kind != "other" for binding in bindings):
                return True
    return False


class Feed(NamedTuple):
    """A feed: the names of the file, and the line."""

    names: Names
    line: int


def feeds_elsewhere(context: Context, placeholder: ast.AST) -> Iterator[Feed]:
    """Yield the feeds of a placeholder in other files, and under other names: of a result, or in a dictionary."""
    names, parent = context.names, context.names.parents.get(placeholder)
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    for target in targets:
        if isinstance(target, ast.Attribute):
            for read in reads_of_assigned_attribute(target, names):
                if (
                    read is not None
                    and read.names is not names
                    and _is_key(read.names.parents.get(read.node), read.node)
                ):
                    yield Feed(read.names, getattr(read.node, "lineno", 0))
    own = {last_name(target) for target in targets} - {""}
    for user in _names_of_users(names):
        for name, pairs in user.once(_pairs_by_name).items():
            for key, _ in pairs if user is not names or name not in own else ():
                if _is_placeholder(key, user, placeholder, names):
                    yield Feed(user, key.lineno)


def _names_of_users(names: Names) -> Iterator[Names]:
    """Yield the names of a file, of the files of its project that import it, and of those that it imports."""
    yield names
    project = names.project
    if project is not None:
        others = project.with_importers([names.path]) | project.with_imports(names.path)
        for module in map(project.module, sorted(others - {names.path})):
            if module is not None:
                yield module.names


def _is_placeholder(key: ast.expr, user: Names, placeholder: ast.AST, names: Names) -> bool:
    """Return True if the key of a feed is a placeholder, or gets it from the dictionary, list or tuple that has it."""
    if not isinstance(key, ast.Subscript):
        return any(origin.node is placeholder for origin in origins(key, user.place(key), user))
    wanted, (label, holders) = (
        boxed_constant(index_of(key)),
        _assigned_key_and_dictionary_origins(placeholder, names),
    )
    for origin in origins(key.value, user.place(key), user):
        if wanted is not None and wanted == label and origin.node in holders:
            return True
        member = _member_of_literal(origin.node, wanted)
        if member is not None and any(
            source.node is placeholder for source in origins(member, origin.where, origin.names)
        ):
            return True
    return False


def _member_of_literal(literal: ast.AST, label: tuple[object] | None) -> ast.expr | None:
    """Return what a literal dictionary, list or tuple has under a key, which is in a tuple."""
    if label is None:
        return None
    if isinstance(literal, ast.Dict):
        pairs = zip(literal.keys, literal.values)
        return next((value for key, value in pairs if key is not None and boxed_constant(key) == label), None)
    if isinstance(literal, (ast.List, ast.Tuple)) and isinstance(label[0], int):
        return next(iter(literal.elts[label[0] :][:1]), None)
    return None


def _assigned_key_and_dictionary_origins(
    placeholder: ast.AST, names: Names
) -> tuple[tuple[object] | None, frozenset[ast.AST]]:
    """Return the literal key to which a placeholder is assigned, in a tuple, and the origins of its dictionary."""
    parent = names.parents.get(placeholder)
    for target in parent.targets if isinstance(parent, ast.Assign) else ():
        if isinstance(target, ast.Subscript):
            holders = origins(target.value, names.place(target), names)
            return boxed_constant(index_of(target)), frozenset(origin.node for origin in holders)
    return None, frozenset()


def _is_key(parent: ast.AST | None, node: ast.AST) -> bool:
    """Return True if an expression is a key of a dictionary that gets a value."""
    if type(parent).__name__ == "Index":
        return True
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Store) and parent.slice is node
    return isinstance(parent, ast.Dict) and node in parent.keys


def _pairs_by_name(names: Names) -> dict[str, list[tuple[ast.expr, ast.expr]]]:
    """Return the keys and values of dictionaries by the last names of the keys; "" for parts of dictionaries."""
    by_name: dict[str, list[tuple[ast.expr, ast.expr]]] = {}
    for node in ast.walk(names.tree):
        pairs: list[tuple[ast.AST | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values))
        elif isinstance(node, ast.Assign):
            pairs = [(index_of(target), node.value) for target in node.targets if isinstance(target, ast.Subscript)]
        for key, value in pairs:
            if isinstance(key, (ast.Name, ast.Attribute, ast.Subscript)):
                by_name.setdefault(last_name(key), []).append((key, value))
    return by_name
