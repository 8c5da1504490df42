"""Find training steps: the functions that compute and apply gradients, and what runs in each of their steps."""

from __future__ import annotations

import ast
from typing import Iterator

from ..semantics.mentions import mentions_of_function
from ..semantics.model import Call
from ..semantics.module_index import Names
from ..semantics.tf_types import UPDATING_METHODS
from .tf_functions import RUN, enclosing_functions, traced_functions

_LOOPS = (ast.For, ast.While)


def training_step_functions(names: Names) -> frozenset[ast.AST]:
    """Return the functions that compute and apply gradients once, outside of loops."""
    by_part: dict[str, set[ast.AST]] = {"tape": set(), "apply": set()}
    for call in names.calls:
        kind = (
            "apply"
            if getattr(call.node.func, "attr", "") == "apply_gradients"
            else "tape"
            if names.resolve(call.node.func, call.where) == "tensorflow.GradientTape"
            else ""
        )
        around = enclosing_functions(names, call.node)
        if kind and around and not _loops_around(names, call.node):
            by_part[kind].add(around[0])
    return frozenset(by_part["tape"] & by_part["apply"])


def is_in_training_step(names: Names, node: ast.AST) -> bool:
    """Return True if an expression runs whenever a function applies gradients: there, or in a function it calls."""
    return _is_in_step(names, node, set())


def _is_in_step(names: Names, node: ast.AST, seen: set[tuple[str, int]]) -> bool:
    around = enclosing_functions(names, node)
    if not around or (names.path, around[0].lineno) in seen:
        return False
    function = around[0]
    seen.add((names.path, function.lineno))
    loops = _loops_around(names, node)
    if any(set(_loops_around(names, update.node)) <= set(loops) for update in _apply_gradients_calls(names, function)):
        return True
    return any(_is_in_step(user, call, seen) for user, call in _calls_of_function(names, function))


def _apply_gradients_calls(names: Names, function: ast.FunctionDef) -> Iterator[Call]:
    """Yield the calls in a function that apply gradients, for a tf.function also those in functions inside it."""
    for call in names.calls:
        if getattr(call.node.func, "attr", "") in UPDATING_METHODS:
            around = enclosing_functions(names, call.node)
            if around[:1] == [function] or function in around and function in names.once(traced_functions):
                yield call


def _calls_of_function(names: Names, function: ast.FunctionDef) -> Iterator[tuple[Names, ast.Call]]:
    """Yield the calls of a function in the project, those by ``strategy.run`` too."""
    for mention in mentions_of_function(function, names) or ():
        user, node = mention.names, mention.node
        call = user.parents.get(node)
        if not isinstance(call, ast.Call):
            continue
        if node is call.func or getattr(call.func, "attr", "") in RUN and node in call.args[:1]:
            definition = user.definition(node, mention.where)
            if (
                definition is not None
                and definition.names.path == names.path
                and getattr(definition.node, "name", "") == function.name
            ):
                yield user, call


def _loops_around(names: Names, node: ast.AST) -> list[ast.AST]:
    """Return the loops around an expression, in its function."""
    loops: list[ast.AST] = []
    child = node
    for parent in names.ancestors(node):
        if isinstance(parent, ast.FunctionDef):
            break
        if isinstance(parent, _LOOPS) and child is not getattr(parent, "iter", None):
            loops.append(parent)
        child = parent
    return loops
