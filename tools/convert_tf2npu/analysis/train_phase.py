"""Decide if code feeds training, evaluation or prediction.

The evidence, the nearest first: the tests around the code (``if mode == tf.estimator.ModeKeys.TRAIN``,
``if is_training``, ``if not is_training: return ...`` before it), the name it is assigned to, the call that it is
passed to, the name of the function around it, the data that it reads. Then the calls of this function, in all files:
the same evidence around each call, and its arguments for parameters such as ``is_training``. Otherwise the phase is
unknown.
"""

from __future__ import annotations

import ast
import os
import re
from typing import Sequence

from ..semantics.mentions import Mention, mentions
from ..semantics.module_index import Names
from ..syntax.expressions import last_name
from .phase_evidence import (
    OPEN,
    TAKERS,
    Phase,
    argument_pairs,
    data_words,
    handed_phase,
    hands_on,
    is_call,
    is_in_tests,
    known,
    looped_phase,
    tested_phase,
    words_read,
)
from .phase_words import EVAL, PREDICT, TRAIN, phase_in, phases_after_exits

__all__ = ["EVAL", "PREDICT", "TRAIN", "Phase", "phase_of"]
_TRAINS = re.compile(r"\.(minimize|apply_gradients|fit|fit_generator|train|train_and_evaluate)\s*\(")
_OTHER_PHASE = re.compile(r"eval|valid|test|predict|infer", re.IGNORECASE)
# Functions that process the data of a phase without feeding it.
_ELSEWHERE = re.compile(r"export|write|dump|convert|count|inspect|plot|show|statistic|stats|visuali", re.IGNORECASE)
_MOST_CALLS = 40  # of one function
_MOST_FUNCTIONS = 30
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def phase_of(node: ast.AST, names: Names, text: str) -> Phase:
    """Return the phase that the code at a node feeds.

    Args:
        node: an expression.
        names: the names of its module.
        text: the module's text.
    """
    found = _Search().climb(node, names)
    if found.phases and (found.complete or TRAIN in found.phases):
        return found
    if not _TRAINS.search(text):
        file = phase_in(os.path.splitext(os.path.basename(names.path))[0])
        return known(file, "the name of the file") if file in (EVAL, PREDICT) else found
    return found if found.phases or _OTHER_PHASE.search(text) else known(TRAIN, "the file, which only trains")


class _Search:
    """One search. It searches each function once."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, Phase | None] = {}  # None while it is searched
        self._followed: set[ast.AST] = set()

    def climb(self, node: ast.AST, names: Names) -> Phase:
        """Return the result of the evidence around a node, from the inside out."""
        child: ast.AST = node
        reads = phase_in(" ".join(words_read(node, names)))
        for parent in names.ancestors(node):
            found = self._beside(parent, child, names)
            if found.phases:
                return found
            if isinstance(parent, ast.FunctionDef):
                found = self._named(parent, names)
                if found.phases:
                    return found
                if reads:
                    return known(reads, "the names of its data")
                if _ELSEWHERE.search(parent.name):
                    return OPEN
                found = self._called(parent, names)
                if found.phases:
                    return found
            elif isinstance(parent, ast.ClassDef):
                named = phase_in(parent.name)
                if named:
                    return known(named, f"the name {parent.name}")
            child = parent
        return known(reads, "the names of its data") if reads else OPEN

    def _named(self, function: ast.FunctionDef, names: Names) -> Phase:
        """Return the phase in the name of a function, unless its calls contradict it."""
        name = function.name
        phase = phase_in(name)
        if not phase or _ELSEWHERE.search(name):
            return OPEN
        if phase == TRAIN:
            called = self._called(function, names)
            if called.phases - {TRAIN}:
                return called
        return known(phase, f"the name {name}")

    def _beside(self, parent: ast.AST, child: ast.AST, names: Names) -> Phase:
        """Return the evidence of one node for a part of it."""
        if isinstance(child, ast.stmt):
            for block in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
                left = phases_after_exits(child, tuple(block)) if isinstance(block, list) and child in block else ()
                if len(left) == 1:
                    return known(next(iter(left)), "the condition before it")
        if isinstance(parent, (ast.If, ast.IfExp)):
            phase = tested_phase(parent, child)
            return known(phase, "the condition around it") if phase else OPEN
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            named = {phase_in(last_name(target)) for target in targets} - {None}
            if len(named) == 1:
                return known(named.pop(), "the name it is assigned to")
            return self._used(targets, parent, names)
        if isinstance(parent, ast.keyword):
            named_by = phase_in(parent.arg or "")
            return known(named_by, f"the argument {parent.arg}") if named_by else OPEN
        if isinstance(parent, ast.Call) and child is not parent.func:
            taker = last_name(parent.func)
            phase = TAKERS.get(taker) or (phase_in(taker) if taker else None)
            return known(phase, f"the call of {taker}") if phase else self._given_to(parent, child, names)
        if isinstance(parent, ast.For) and child is parent.iter:
            return looped_phase(parent)
        return OPEN

    def _given_to(self, call: ast.Call, value: ast.AST, names: Names) -> Phase:
        """Return the phase of a function or variable that a call passes to a function of the project."""
        handed = getattr(value, "value", value) if isinstance(value, ast.keyword) else value
        definition = (
            names.definition(call.func, names.place(call)) if isinstance(handed, (ast.Name, ast.Attribute)) else None
        )
        if not definition or not isinstance(definition[0], ast.FunctionDef) or call in self._followed:
            return OPEN
        self._followed.add(call)
        function, theirs = definition
        parameter = next((name for name, one in argument_pairs(function, call) if one is handed), None)
        return self._uses_of(parameter, function, theirs) if parameter else OPEN

    def _uses_of(self, parameter: str, function: ast.AST, names: Names) -> Phase:
        found = []
        for node in names.mentions(parameter, function):
            bindings = names.lookup(parameter, names.place(names.parents[node])) or ()
            if function in names.ancestors(node) and any(
                b.kind == "arg" and b.where.scope.node is function for b in bindings
            ):
                found.append(self._at(None, Mention(node, names.place(node), names)))
        phases = frozenset(phase for one in found for phase in one.phases)
        return Phase(phases, f"the uses of {parameter}", all(one.complete for one in found)) if phases else OPEN

    def _used(self, targets: Sequence[ast.expr], assignment: ast.stmt, names: Names) -> Phase:
        """Return the phase of the uses of the variable that holds a value, in the same function."""
        where = names.places[assignment]
        found: set[str] = set()
        because = ""
        for target in targets:
            if not isinstance(target, ast.Name) or assignment in self._followed:
                continue
            self._followed.add(assignment)
            for node in names.mentions(target.id, where.scope.node):
                place = names.place(node)
                bindings = names.lookup(target.id, place) or ()
                if place.scope is where.scope and any(b.where.statement is assignment for b in bindings):
                    use = self._in_statement(node, names)
                    found |= use.phases
                    because = use.because if use.phases else because
        return Phase(frozenset(found), because) if found else OPEN

    def _in_statement(self, node: ast.AST, names: Names) -> Phase:
        child = node
        for parent in names.ancestors(node):
            found = self._beside(parent, child, names)
            if found.phases:
                return found
            if isinstance(parent, ast.stmt):
                break
            child = parent
        return OPEN

    def _called(self, function: ast.FunctionDef, names: Names) -> Phase:
        """Return the phase of the calls of a function."""
        if function in self._known or len(self._known) >= _MOST_FUNCTIONS:
            return self._known.get(function) or OPEN
        self._known[function] = None
        uses = mentions(function, names)
        found = [self._at(function, use) for use in uses or () if not self._is_asked(use) and not is_in_tests(use)]
        phases = frozenset(phase for one in found for phase in one.phases)
        because = ("the calls of %s" if any(is_call(use) for use in uses or ()) else "the uses of %s") % function.name
        complete = len(found) <= _MOST_CALLS and all(one.phases and one.complete for one in found)
        self._known[function] = Phase(phases, because, complete) if phases else OPEN
        return self._known[function] or OPEN

    def _is_asked(self, use: Mention) -> bool:
        """Return True if a call is in a function whose calls are being searched."""
        return any(self._known.get(p, OPEN) is None for p in use.names.ancestors(use.node) if isinstance(p, _FUNCTIONS))

    def _at(self, function: ast.AST | None, use: Mention) -> Phase:
        call = use.names.parents[use.node]
        if isinstance(call, ast.Call) and is_call(use):
            handed = handed_phase(function, call)
            if handed:
                return known(handed, "the arguments of its call")
            found = self.climb(call, use.names)
            if found.phases or hands_on(function, call):
                return found
            values = call.args + [k.value for k in call.keywords]
            return known(phase_in(" ".join(w for v in values for w in data_words(v))), "the names of its data")
        return self.climb(use.node, use.names)
