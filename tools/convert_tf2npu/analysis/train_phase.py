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
from typing import NamedTuple, Sequence

from ..semantics.mentions import Mention, mentions
from ..semantics.module_index import Names
from ..syntax.expressions import constant, last_name
from .phase_words import (
    EVAL,
    PREDICT,
    TRAIN,
    argument_phase,
    branch_phases,
    is_switch,
    parameters,
    phase_in,
    phases_after_exits,
    phases_in,
)

__all__ = ["EVAL", "PREDICT", "TRAIN", "Phase", "phase_of"]
_TAKERS = {
    "train": TRAIN,
    "TrainSpec": TRAIN,
    "fit": TRAIN,
    "fit_generator": TRAIN,
    "train_on_batch": TRAIN,
    "evaluate": EVAL,
    "EvalSpec": EVAL,
    "evaluate_generator": EVAL,
    "test_on_batch": EVAL,
    "predict": PREDICT,
    "predict_generator": PREDICT,
    "predict_on_batch": PREDICT,
}
_TRAINS = re.compile(r"\.(minimize|apply_gradients|fit|fit_generator|train|train_and_evaluate)\s*\(")
_OTHER_PHASE = re.compile(r"eval|valid|test|predict|infer", re.IGNORECASE)
_STEPS = frozenset({"apply_gradients", "minimize", "train_on_batch", "train_step", "GradientTape"})
_OF_NUMBERS = re.compile(r"batch|size|step|epoch|num_|_per_|ratio|rate|buffer", re.IGNORECASE)
# Functions that process the data of a phase without feeding it.
_ELSEWHERE = re.compile(r"export|write|dump|convert|count|inspect|plot|show|statistic|stats|visuali", re.IGNORECASE)
_TEST_FILE = re.compile(r"test_.*|.*_test\.py|.*_test_utils?\.py|conftest\.py")
_MOST_CALLS = 40  # of one function
_MOST_FUNCTIONS = 30
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Phase(NamedTuple):
    """The phases that code feeds, and the evidence in words.

    ``phases`` is empty if they are unknown. With several phases the code serves all of them. ``complete`` is True if
    all calls that lead to the code were understood.
    """

    phases: frozenset[str]
    because: str
    complete: bool = True

    @property
    def name(self) -> str | None:
        """The one phase that the code feeds, or None."""
        return next(iter(self.phases)) if len(self.phases) == 1 and self.complete else None


_OPEN = Phase(frozenset(), "nothing around it shows it", False)


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
        return _of(file, "the name of the file") if file in (EVAL, PREDICT) else found
    return found if found.phases or _OTHER_PHASE.search(text) else _of(TRAIN, "the file, which only trains")


class _Search:
    """One search. It searches each function once."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, Phase | None] = {}  # None while it is searched
        self._followed: set[ast.AST] = set()

    def climb(self, node: ast.AST, names: Names) -> Phase:
        """Return the result of the evidence around a node, from the inside out."""
        child: ast.AST = node
        reads = phase_in(" ".join(_words_read(node, names)))
        for parent in names.ancestors(node):
            found = self._beside(parent, child, names)
            if found.phases:
                return found
            if isinstance(parent, ast.FunctionDef):
                found = self._named(parent, names)
                if found.phases:
                    return found
                if reads:
                    return _of(reads, "the names of its data")
                if _ELSEWHERE.search(parent.name):
                    return _OPEN
                found = self._called(parent, names)
                if found.phases:
                    return found
            elif isinstance(parent, ast.ClassDef):
                named = phase_in(parent.name)
                if named:
                    return _of(named, f"the name {parent.name}")
            child = parent
        return _of(reads, "the names of its data") if reads else _OPEN

    def _named(self, function: ast.FunctionDef, names: Names) -> Phase:
        """Return the phase in the name of a function, unless its calls contradict it."""
        name = function.name
        phase = phase_in(name)
        if not phase or _ELSEWHERE.search(name):
            return _OPEN
        if phase == TRAIN:
            called = self._called(function, names)
            if called.phases - {TRAIN}:
                return called
        return _of(phase, f"the name {name}")

    def _beside(self, parent: ast.AST, child: ast.AST, names: Names) -> Phase:
        """Return the evidence of one node for a part of it."""
        if isinstance(child, ast.stmt):
            for block in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
                left = phases_after_exits(child, tuple(block)) if isinstance(block, list) and child in block else ()
                if len(left) == 1:
                    return _of(next(iter(left)), "the condition before it")
        if isinstance(parent, (ast.If, ast.IfExp)):
            phase = _tested(parent, child)
            return _of(phase, "the condition around it") if phase else _OPEN
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            named = {phase_in(last_name(target)) for target in targets} - {None}
            if len(named) == 1:
                return _of(named.pop(), "the name it is assigned to")
            return self._used(targets, parent, names)
        if isinstance(parent, ast.keyword):
            named_by = phase_in(parent.arg or "")
            return _of(named_by, f"the argument {parent.arg}") if named_by else _OPEN
        if isinstance(parent, ast.Call) and child is not parent.func:
            taker = last_name(parent.func)
            phase = _TAKERS.get(taker) or (phase_in(taker) if taker else None)
            return _of(phase, f"the call of {taker}") if phase else self._given_to(parent, child, names)
        if isinstance(parent, ast.For) and child is parent.iter:
            return _looped(parent)
        return _OPEN

    def _given_to(self, call: ast.Call, value: ast.AST, names: Names) -> Phase:
        """Return the phase of a function or variable that a call passes to a function of the project."""
        handed = getattr(value, "value", value) if isinstance(value, ast.keyword) else value
        definition = (
            names.definition(call.func, names.place(call)) if isinstance(handed, (ast.Name, ast.Attribute)) else None
        )
        if not definition or not isinstance(definition[0], ast.FunctionDef) or call in self._followed:
            return _OPEN
        self._followed.add(call)
        function, theirs = definition
        parameter = next((name for name, one in _pairs(function, call) if one is handed), None)
        return self._uses_of(parameter, function, theirs) if parameter else _OPEN

    def _uses_of(self, parameter: str, function: ast.AST, names: Names) -> Phase:
        found = []
        for node in names.mentions(parameter):
            bindings = names.lookup(parameter, names.place(names.parents[node])) or ()
            if function in names.ancestors(node) and any(
                b.kind == "arg" and b.where.scope.node is function for b in bindings
            ):
                found.append(self._at(None, Mention(node, names.place(node), names)))
        phases = frozenset(phase for one in found for phase in one.phases)
        return Phase(phases, f"the uses of {parameter}", all(one.complete for one in found)) if phases else _OPEN

    def _used(self, targets: Sequence[ast.expr], assignment: ast.stmt, names: Names) -> Phase:
        """Return the phase of the uses of the variable that holds a value, in the same function."""
        where = names.places[assignment]
        found: set[str] = set()
        because = ""
        for target in targets:
            if not isinstance(target, ast.Name) or assignment in self._followed:
                continue
            self._followed.add(assignment)
            for node in names.mentions(target.id):
                place = names.place(node)
                bindings = names.lookup(target.id, place) or ()
                if place.scope is where.scope and any(b.where.statement is assignment for b in bindings):
                    use = self._in_statement(node, names)
                    found |= use.phases
                    because = use.because if use.phases else because
        return Phase(frozenset(found), because) if found else _OPEN

    def _in_statement(self, node: ast.AST, names: Names) -> Phase:
        child = node
        for parent in names.ancestors(node):
            found = self._beside(parent, child, names)
            if found.phases:
                return found
            if isinstance(parent, ast.stmt):
                break
            child = parent
        return _OPEN

    def _called(self, function: ast.FunctionDef, names: Names) -> Phase:
        """Return the phase of the calls of a function."""
        if function in self._known or len(self._known) >= _MOST_FUNCTIONS:
            return self._known.get(function) or _OPEN
        self._known[function] = None
        uses = mentions(function, names)
        found = [self._at(function, use) for use in uses or () if not self._is_asked(use) and not _tests(use)]
        phases = frozenset(phase for one in found for phase in one.phases)
        because = ("the calls of %s" if any(_is_call(use) for use in uses or ()) else "the uses of %s") % function.name
        complete = len(found) <= _MOST_CALLS and all(one.phases and one.complete for one in found)
        self._known[function] = Phase(phases, because, complete) if phases else _OPEN
        return self._known[function] or _OPEN

    def _is_asked(self, use: Mention) -> bool:
        """Return True if a call is in a function whose calls are being searched."""
        return any(
            self._known.get(p, _OPEN) is None for p in use.names.ancestors(use.node) if isinstance(p, _FUNCTIONS)
        )

    def _at(self, function: ast.AST | None, use: Mention) -> Phase:
        call = use.names.parents[use.node]
        if isinstance(call, ast.Call) and _is_call(use):
            handed = _handed(function, call)
            if handed:
                return _of(handed, "the arguments of its call")
            found = self.climb(call, use.names)
            if found.phases or _handed_on(function, call):
                return found
            values = call.args + [k.value for k in call.keywords]
            return _of(phase_in(" ".join(w for v in values for w in _data_words(v))), "the names of its data")
        return self.climb(use.node, use.names)


def _of(phase: str | None, because: str) -> Phase:
    return Phase(frozenset({phase} if phase else ()), because)


def _tests(use: Mention) -> bool:
    """Return True if a call is in the unit tests of a project, which are no evidence."""
    file = os.path.basename(use.names.path)
    return bool(_TEST_FILE.match(file)) or any(
        isinstance(p, ast.ClassDef) and p.name.endswith(("Test", "TestCase")) for p in use.names.ancestors(use.node)
    )


def _is_call(use: Mention) -> bool:
    call = use.names.parents[use.node]
    return isinstance(call, ast.Call) and (
        call.func is use.node or (last_name(call.func) == "partial" and call.args[:1] == [use.node])
    )


def _handed(function: ast.AST | None, call: ast.Call) -> str | None:
    """Return the phase in the arguments of a call: ``is_training=True``, ``mode='eval'``."""
    found = {argument_phase(name, value) for name, value in _pairs(function, call)} - {None}
    return found.pop() if len(found) == 1 else None


def _handed_on(function: ast.AST | None, call: ast.Call) -> bool:
    """Return True if a call passes on the phase of its caller: ``is_training=is_training``."""
    return any(
        isinstance(value, (ast.Name, ast.Attribute)) and is_switch(name) or name == "mode"
        for name, value in _pairs(function, call)
    )


def _pairs(function: ast.AST | None, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """Return the arguments of a call with the names of their parameters."""
    names = [p.arg for p in parameters(function)]
    args = call.args[1:] if last_name(call.func) == "partial" else call.args
    if names[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute):
        names = names[1:]
    return list(zip(names, args)) + [(k.arg or "", k.value) for k in call.keywords]


def _tested(parent: ast.AST, child: ast.AST) -> str | None:
    """Return the phase in which the test around some code runs it."""
    yes, no = branch_phases(parent.test)  # type: ignore[attr-defined]
    for part, phase in ((parent.body, yes), (parent.orelse, no)):  # type: ignore[attr-defined]
        if any(child is one for one in (part if isinstance(part, list) else [part])):
            return phase
    return None


def _looped(loop: ast.For) -> Phase:
    """Return the phase of a loop over data."""
    called = {last_name(n.func) for statement in loop.body for n in ast.walk(statement) if isinstance(n, ast.Call)}
    if called & _STEPS:
        return _of(TRAIN, "the loop over it")
    phases = {phase for word in called for phase in ({_TAKERS[word]} if word in _TAKERS else phases_in(word))}
    return Phase(frozenset(phases), "the loop over it") if len(phases) == 1 else _OPEN


def _words_read(node: ast.AST, names: Names) -> list[str]:
    """Return the names and strings of which a dataset is made: ``x_train``, ``'train.csv'``."""
    found: list[str] = []
    done: set[ast.AST] = set()
    todo: list[ast.AST] = [node]
    while todo:
        node = todo.pop()
        if node in done:
            continue
        done.add(node)
        if isinstance(node, ast.Attribute):
            todo.append(node.value)
        elif isinstance(node, ast.Call):
            maker = last_name(node.func)
            if maker.startswith("from_") or maker.endswith("Dataset") or maker == "list_files":
                for value in node.args + [k.value for k in node.keywords]:
                    found += _data_words(value)
            todo.append(node.func)
        elif isinstance(node, ast.Name):
            todo += [
                b.node
                for b in names.lookup(node.id, names.place(node)) or ()
                if b.kind == "value" and b.node is not None
            ]
    return found


def _data_words(node: ast.AST) -> list[str]:
    """Return the names and short strings in an expression, except those of numbers and choices."""
    found = []
    for part in ast.walk(node):
        if isinstance(part, (ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda, ast.Subscript)):
            return []
        text = constant(part)
        if isinstance(part, (ast.Name, ast.Attribute)):
            found.append(last_name(part))
        elif text and isinstance(text[0], str) and len(text[0]) < 80:
            found.append(text[0])
    return [word for word in found if not _OF_NUMBERS.search(word)]
