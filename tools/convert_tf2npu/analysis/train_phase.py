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

from ..files.extensions import NOTEBOOK
from ..files.message import Message
from ..semantics.mentions import Mention, mentions_of_function
from ..semantics.module_index import Names
from ..syntax.expressions import last_name, values_of
from .dataset_reads import Uses
from .dataset_uses import uses_of_dataset
from .phase_evidence import (
    OPEN,
    TAKERS,
    Phase,
    data_words_of_dataset,
    is_call_mention,
    is_in_tests,
    passed_phase,
    passes_phase_on,
    phase_with_evidence,
    tested_phase,
    words_in_expression,
)
from .phase_words import EVAL, OTHER, PREDICT, TRAIN, phase_in, phases_after_exits

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
    uses = uses_of_dataset(node, names, _conditional_phase(node, names))
    if uses.complete and uses.phases != {OTHER}:
        return _phase_of_reads(uses, names)
    undecided = Phase(frozenset({TRAIN}), Message("the calls of {0}", uses.undecided), False)
    if uses.undecided and uses.phases == {TRAIN}:
        return undecided
    phase = _Search().phase_around(node, names)
    if uses.phases:
        used = _phase_of_reads(uses, names)
        if not phase.phases:
            return used._replace(complete=uses.complete or not any(use.sites for use in uses.reads))
        because = phase.because if uses.phases <= phase.phases or not phase.complete else used.because
        phases = phase.phases | uses.phases
        return used._replace(
            phases=phases - {OTHER} if TRAIN not in phases else phases, because=because, complete=phase.complete
        )
    if phase.phases and (phase.complete or TRAIN in phase.phases):
        return phase
    if not _TRAINS.search(text):
        file = phase_in(os.path.splitext(os.path.basename(names.path))[0])
        return phase_with_evidence(file, "the name of the file") if file in (EVAL, PREDICT) else phase
    if phase.phases or _OTHER_PHASE.search(text):
        return phase
    return undecided if uses.undecided else phase_with_evidence(TRAIN, "the file, which only trains")


def _phase_of_reads(uses: Uses, names: Names) -> Phase:
    """Return the phase of the reads of a dataset, and where to see it."""
    shared = uses.training_and_other_read
    use = shared.other if shared else next((use for use in uses.reads if use.phase != TRAIN), uses.reads[0])
    because, line = use.by, getattr(use.node, "lineno", 0)
    if not use.names.path.endswith(NOTEBOOK):  # its lines are those of cells
        file = "" if use.names.path == names.path else os.path.basename(use.names.path) + ":"
        because = Message("{0}, line {1}{2}", because, file, line)
    trained = shared.trains if shared else None
    is_here = trained is not None and trained.names is names and not trained.by.endswith("run")
    return Phase(uses.phases, because, True, bool(shared), trained.node if trained and is_here else None)


def _conditional_phase(node: ast.AST, names: Names) -> str | None:
    """Return the phase in which a function runs some code, by the tests in it."""
    child = node
    for parent in names.ancestors(node):
        phases = _phase_of_condition(parent, child).phases
        if phases or isinstance(parent, _FUNCTIONS):
            return next(iter(phases), None)
        child = parent
    return None


def _phase_of_condition(parent: ast.AST, child: ast.AST) -> Phase:
    """Return the phase of the tests of one node for a part of it."""
    if isinstance(child, ast.stmt):
        for block in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
            left = phases_after_exits(child, tuple(block)) if isinstance(block, list) and child in block else ()
            if len(left) == 1:
                return phase_with_evidence(next(iter(left)), "the condition before it")
    if isinstance(parent, (ast.If, ast.IfExp)):
        phase = tested_phase(parent, child)
        return phase_with_evidence(phase, "the condition around it") if phase else OPEN
    return OPEN


class _Search:
    """One search. It searches each function once."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, Phase | None] = {}  # None while it is searched

    def phase_around(self, node: ast.AST, names: Names) -> Phase:
        """Return the result of the evidence around a node, from the inside out."""
        child: ast.AST = node
        reads = phase_in(" ".join(data_words_of_dataset(node, names)))
        for parent in names.ancestors(node):
            phase = _phase_evidence_in_parent(parent, child)
            if phase.phases:
                return phase
            if isinstance(parent, ast.FunctionDef):
                phase = self._phase_in_function_name(parent, names)
                if phase.phases:
                    return phase
                if reads:
                    return phase_with_evidence(reads, "the names of its data")
                if _ELSEWHERE.search(parent.name):
                    return OPEN
                phase = self._phase_of_calls(parent, names)
                if phase.phases:
                    return phase
            elif isinstance(parent, ast.ClassDef):
                named = phase_in(parent.name)
                if named:
                    return phase_with_evidence(named, Message("the name {0}", parent.name))
            child = parent
        return phase_with_evidence(reads, "the names of its data") if reads else OPEN

    def _phase_in_function_name(self, function: ast.FunctionDef, names: Names) -> Phase:
        """Return the phase in the name of a function, unless its calls contradict it."""
        name = function.name
        phase = phase_in(name)
        if not phase or _ELSEWHERE.search(name):
            return OPEN
        if phase == TRAIN:
            called = self._phase_of_calls(function, names)
            if called.phases - {TRAIN}:
                return called
        return phase_with_evidence(phase, Message("the name {0}", name))

    def _phase_of_calls(self, function: ast.FunctionDef, names: Names) -> Phase:
        """Return the phase of the calls of a function."""
        if function in self._known or len(self._known) >= _MOST_FUNCTIONS:
            return self._known.get(function) or OPEN
        self._known[function] = None
        uses = mentions_of_function(function, names)
        phases_of_calls = [
            self._phase_at_mention(function, use)
            for use in uses or ()
            if not self._is_being_searched(use) and not is_in_tests(use)
        ]
        phases = frozenset(phase for one in phases_of_calls for phase in one.phases)
        called = any(is_call_mention(use) for use in uses or ())
        because = Message("the calls of {0}" if called else "the uses of {0}", function.name)
        complete = len(phases_of_calls) <= _MOST_CALLS and all(one.phases and one.complete for one in phases_of_calls)
        self._known[function] = Phase(phases, because, complete) if phases else OPEN
        return self._known[function] or OPEN

    def _is_being_searched(self, use: Mention) -> bool:
        """Return True if a call is in a function whose calls are being searched."""
        return any(self._known.get(p, OPEN) is None for p in use.names.ancestors(use.node) if isinstance(p, _FUNCTIONS))

    def _phase_at_mention(self, function: ast.AST | None, use: Mention) -> Phase:
        call = use.names.parents[use.node]
        if isinstance(call, ast.Call) and is_call_mention(use):
            handed = passed_phase(function, call)
            if handed:
                return phase_with_evidence(handed, "the arguments of its call")
            phase = self.phase_around(call, use.names)
            if phase.phases or passes_phase_on(function, call):
                return phase
            values = values_of(call)
            return phase_with_evidence(
                phase_in(" ".join(w for v in values for w in words_in_expression(v))), "the names of its data"
            )
        return self.phase_around(use.node, use.names)


def _phase_evidence_in_parent(parent: ast.AST, child: ast.AST) -> Phase:
    """Return the evidence of one node for a part of it."""
    condition = _phase_of_condition(parent, child)
    if condition.phases or isinstance(parent, (ast.If, ast.IfExp)):
        return condition
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        named = {phase_in(last_name(target)) for target in targets} - {None}
        return phase_with_evidence(named.pop(), "the name it is assigned to") if len(named) == 1 else OPEN
    if isinstance(parent, ast.keyword):
        named_by = phase_in(parent.arg or "")
        return phase_with_evidence(named_by, Message("the argument {0}", parent.arg)) if named_by else OPEN
    if isinstance(parent, ast.Call) and child is not parent.func:
        taker = last_name(parent.func)
        phase = TAKERS.get(taker) or (phase_in(taker) if taker else None)
        return phase_with_evidence(phase, Message("the call of {0}", taker)) if phase else OPEN
    return OPEN
