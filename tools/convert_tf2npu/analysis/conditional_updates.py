"""Decide if code updates variables only for some arguments of its function, as under ``if training:``."""

from __future__ import annotations

import ast
from typing import Iterable, Iterator, NamedTuple

from ..semantics.module_index import Names
from ..syntax.expressions import last_name
from .phase_evidence import STEPS, argument_pairs
from .phase_words import parameters_of

_UPDATES = STEPS - {"GradientTape"}
_EXITS = (ast.Continue, ast.Return, ast.Break)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST = 40  # functions


class _Part(NamedTuple):
    """Code of one function.

    Attributes:
        node, names: the code, and the names of its module.
        varying: the parameters of its function by which its calls may differ.
        is_conditional: True if it runs only for some arguments.
    """

    node: ast.AST
    names: Names
    varying: frozenset[str]
    is_conditional: bool


def are_updates_conditional(parts: Iterable[ast.AST], names: Names) -> bool:
    """Return True if some code of a function has updates, and each is under a condition on parameters of the function.

    Args:
        parts: statements or expressions of one function.
        names: the names of their module.
    """
    todo = [_Part(part, names, _parameters_around(part, names), False) for part in parts]
    seen: set[ast.AST] = set()
    conditional = False
    while todo:
        part = todo.pop()
        for call in _calls_in(part.node):
            under = part.is_conditional or _is_under_condition(call, part)
            if last_name(call.func) in _UPDATES:
                if not under:
                    return False
                conditional = True
            for function, theirs in _functions_run_by(call, part.names):
                if function not in seen and len(seen) < _MOST:
                    seen.add(function)
                    pairs = argument_pairs(function, call)
                    varying = {name for name, value in pairs if _names_in(value) & part.varying}
                    todo.append(_Part(function, theirs, frozenset(varying), under))
    return conditional


def _parameters_around(node: ast.AST, names: Names) -> frozenset[str]:
    function = next((parent for parent in names.ancestors(node) if isinstance(parent, _FUNCTIONS)), None)
    return frozenset(parameter.arg for parameter in parameters_of(function)) - {"self", "cls"}


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _functions_run_by(call: ast.Call, names: Names) -> Iterator[tuple[ast.FunctionDef, Names]]:
    """Yield the function of the project that a call runs, or that it is given, as by strategy.run."""
    for named in [call.func, *call.args[:1]]:
        function = names.function_definition(named, names.place(call)) if last_name(named) else None
        if function is not None:
            yield function


def _is_under_condition(call: ast.Call, part: _Part) -> bool:
    """Return True if a test of varying parameters decides if a call in a part runs."""
    child: ast.AST = call
    for parent in part.names.ancestors(call):
        if (
            isinstance(parent, (ast.If, ast.IfExp))
            and child is not parent.test
            and _is_test_of_parameters(parent.test, part)
        ):
            branches = (_as_node_list(parent.body), _as_node_list(parent.orelse))
            other = branches[1] if child in branches[0] else branches[0]
            if not any(_may_update(statement, part.names) for statement in other):
                return True
        if isinstance(child, ast.stmt) and _has_exit_before(child, parent, part):
            return True
        if child is part.node or isinstance(parent, _FUNCTIONS):
            return False
        child = parent
    return False


def _has_exit_before(statement: ast.stmt, parent: ast.AST, part: _Part) -> bool:
    """Return True if a test of varying parameters leaves the block of a statement before it."""
    for block in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
        if isinstance(block, list) and statement in block:
            return any(
                isinstance(before, ast.If)
                and isinstance(before.body[-1], _EXITS)
                and not any(_may_update(inner, part.names) for inner in before.body)
                and _is_test_of_parameters(before.test, part)
                for before in block[: block.index(statement)]
            )
    return False


def _is_test_of_parameters(test: ast.expr, part: _Part) -> bool:
    """Return True if a test reads varying parameters, and nothing else but modules and constants."""
    used = _names_in(test)
    imported = {
        name
        for name in used - part.varying
        if any(binding.kind == "import" for binding in part.names.module.bindings.get(name, ()))
    }
    return bool(used & part.varying) and used <= part.varying | imported


def _may_update(node: ast.AST, names: Names) -> bool:
    """Return True if code, or a function of the project that it calls, updates variables."""
    todo = [(node, names)]
    seen: set[ast.AST] = set()
    while todo:
        code, theirs = todo.pop()
        for call in _calls_in(code):
            if last_name(call.func) in _UPDATES:
                return True
            for function, its_names in _functions_run_by(call, theirs):
                if function not in seen and len(seen) < _MOST:
                    seen.add(function)
                    todo.append((function, its_names))
    return False


def _names_in(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _as_node_list(branch: ast.expr | list[ast.stmt]) -> list[ast.AST]:
    return list(branch) if isinstance(branch, list) else [branch]
