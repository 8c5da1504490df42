"""Judge a loop over a dataset by its body: training, evaluation, prediction, a look at the data, or other code."""

from __future__ import annotations

import ast
import re
from typing import Iterable, Iterator

from ..semantics.model import Where
from ..semantics.module_index import Instance, Names
from ..semantics.value_flow import origins
from ..syntax.expressions import last_name
from .conditional_updates import are_updates_conditional
from .host_work import only_prints
from .phase_evidence import STEPS, TAKERS
from .phase_words import EVAL, OTHER, PREDICT, TRAIN, phases_in

UNKNOWN, PEEK, BY_CALL = "", "look", "by_call"
_MAY_TRAIN = re.compile(r"step|train|updat(?!e_state)|optimi|fit|learn|\Arun|backward|\Acall\Z|epoch", re.IGNORECASE)
_MOST = 40  # functions


def phase_of_loop(loop: ast.AST, names: Names) -> str:
    """Return the phase of a loop or comprehension over a dataset, ``PEEK`` if it only looks at it, or ``UNKNOWN``.

    It is ``BY_CALL`` if the loop trains only for some arguments of its function, as under ``if training:``.
    """
    body = getattr(loop, "body", None)
    parts = body if isinstance(body, list) else [loop]
    if isinstance(body, list) and (only_prints(body) or isinstance(body[-1], (ast.Break, ast.Return))):
        return PEEK
    called = set(_called_names(parts, names))
    if called & STEPS:
        return BY_CALL if are_updates_conditional(parts, names) else TRAIN
    phases = {phase for word in called for phase in ({TAKERS[word]} if word in TAKERS else phases_in(word))}
    if not phases and "update_state" in called:  # of a metric
        return EVAL
    if phases:
        return phases.pop() if len(phases) == 1 else EVAL if phases == {EVAL, PREDICT} else UNKNOWN
    return UNKNOWN if any(_MAY_TRAIN.search(word) for word in called) else OTHER


def phase_of_step(call: ast.Call, names: Names) -> str:
    """Return the phase of ``next(iterator)``: that of the loop around it, or of its function; without a loop a look."""
    for parent in names.ancestors(call):
        if isinstance(parent, (ast.For, ast.While)):
            return phase_of_loop(parent, names)
        if isinstance(parent, ast.FunctionDef):
            return TRAIN if set(_called_names(parent.body, names)) & STEPS else UNKNOWN
    return PEEK


def phase_of_run(call: ast.Call, names: Names) -> str:
    """Return the phase of the session runs after ``session.run(iterator.initializer)``, up to the next such run."""
    statement = names.place(call).statement
    parent = names.parents.get(statement) if statement is not None else None
    for block in (getattr(parent, "body", ()), getattr(parent, "orelse", ()), getattr(parent, "finalbody", ())):
        if isinstance(block, list) and statement in block:
            return _phase_of_runs(block[block.index(statement) + 1 :], names)
    return UNKNOWN


def _phase_of_runs(block: list[ast.stmt], names: Names) -> str:
    fetched = False
    for statement in block:
        runs = [
            node.args[0]
            for node in ast.walk(statement)
            if isinstance(node, ast.Call) and last_name(node.func) == "run" and node.args
        ]
        if runs and isinstance(statement, (ast.Expr, ast.Assign)) and any(map(_fetches_initializer, runs)):
            break
        for fetch in runs:
            for node in ast.walk(fetch):
                if isinstance(node, (ast.Name, ast.Attribute)):
                    sources = origins(node, names.place(node), names)
                    if TRAIN in phases_in(last_name(node)) or any(
                        isinstance(one.node, ast.Call) and last_name(one.node.func) in STEPS for one in sources
                    ):
                        return TRAIN
                    fetched = fetched or any(isinstance(one.node, ast.Call) for one in sources)
    return OTHER if fetched else UNKNOWN


def _fetches_initializer(fetch: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "initializer" for node in ast.walk(fetch))


def _called_names(parts: Iterable[ast.AST], names: Names) -> Iterator[str]:
    """Yield the last names of the functions that code calls, and that functions of the project call in it."""
    todo = [(part, names) for part in parts]
    seen: set[ast.AST] = set()
    while todo:
        part, theirs = todo.pop()
        for node in ast.walk(part):
            if not isinstance(node, ast.Call):
                continue
            yield last_name(node.func)
            for named in [node.func, *node.args[:1]]:  # also strategy.run(step, ...)
                for function, its_names in _called_functions(named, theirs.place(node), theirs):
                    if function not in seen and len(seen) < _MOST:
                        seen.add(function)
                        todo.append((function, its_names))


def _called_functions(named: ast.AST, where: Where, names: Names) -> Iterator[tuple[ast.AST, Names]]:
    """Yield the function of the project that an expression names, or the method that a call of its object runs."""
    definition = names.definition(named, where) if last_name(named) else None
    if definition is not None and isinstance(definition.node, ast.FunctionDef):
        yield definition.node, definition.names
    kind = (
        names.types.type_of(named, where)
        if definition is None and isinstance(named, (ast.Name, ast.Attribute))
        else None
    )
    if isinstance(kind, Instance):
        for held in kind.names.attribute_bindings(kind.owner, "__call__"):
            if isinstance(held.binding.node, ast.FunctionDef):
                yield held.binding.node, held.names
