"""Evidence of the phase that code feeds: its name, arguments of calls, tests around it, loops over it, its data."""

from __future__ import annotations

import ast
import os
import re
from typing import Iterator, NamedTuple

from ..semantics.mentions import Mention
from ..semantics.module_index import Names
from ..syntax.expressions import boxed_constant, last_name, values_of
from .phase_words import (
    EVAL,
    PREDICT,
    TRAIN,
    branch_phases,
    is_phase_switch,
    parameters_of,
    phase_in,
    phase_of_parameter_value,
)

TAKERS = {
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
STEPS = frozenset({"apply_gradients", "minimize", "train_on_batch", "train_step", "GradientTape"})
_OF_NUMBERS = re.compile(r"batch|size|step|epoch|num_|_per_|ratio|rate|buffer", re.IGNORECASE)
_TEST_FILE = re.compile(r"test_.*|.*_test\.py|.*_test_utils?\.py|conftest\.py")


class Phase(NamedTuple):
    """The phases that code feeds, and the evidence in words.

    ``phases`` is empty if they are unknown. With several phases the code serves all of them. ``complete`` is True if
    all calls that lead to the code were understood. ``shared`` is True if one dataset feeds training and something
    else; ``trained`` is then the dataset that training reads, if it is in the same file.
    """

    phases: frozenset[str]
    because: str
    complete: bool = True
    shared: bool = False
    trained: ast.AST | None = None

    @property
    def name(self) -> str | None:
        """The one phase that the code feeds, or None."""
        return next(iter(self.phases)) if len(self.phases) == 1 and self.complete else None


OPEN = Phase(frozenset(), "nothing around it shows it", False)


def phase_with_evidence(phase: str | None, because: str) -> Phase:
    """Return a phase with its evidence; no phase if it is None."""
    return Phase(frozenset({phase} if phase else ()), because)


def is_in_tests(use: Mention) -> bool:
    """Return True if a call is in the unit tests of a project, which are no evidence."""
    file = os.path.basename(use.names.path)
    return bool(_TEST_FILE.match(file)) or any(
        isinstance(p, ast.ClassDef) and p.name.endswith(("Test", "TestCase")) for p in use.names.ancestors(use.node)
    )


def is_call_mention(use: Mention) -> bool:
    """Return True if a mention of a function calls it, itself or by functools.partial."""
    call = use.names.parents[use.node]
    return isinstance(call, ast.Call) and (
        call.func is use.node or (last_name(call.func) == "partial" and call.args[:1] == [use.node])
    )


def passed_phase(function: ast.AST | None, call: ast.Call) -> str | None:
    """Return the phase in the arguments of a call: ``is_training=True``, ``mode='eval'``."""
    phases = {phase_of_parameter_value(name, value) for name, value in argument_pairs(function, call)} - {None}
    return phases.pop() if len(phases) == 1 else None


def passed_or_default_phase(function: ast.AST, call: ast.Call) -> str | None:
    """Return the phase in the arguments of a call; without one there, in the defaults of those that it does not pass.

    Of the defaults only those of parameters such as ``training`` count: ``is_test=False`` is no sign of training.
    """
    pairs = argument_pairs(function, call)
    phases = {phase_of_parameter_value(name, value) for name, value in pairs} - {None}
    if not phases and not any(isinstance(one, ast.Starred) for one in call.args) and all(k.arg for k in call.keywords):
        given = {name for name, _ in pairs}
        phases = {
            phase_of_parameter_value(name, value)
            for name, value in _parameters_with_defaults(function)
            if name not in given and is_phase_switch(name) and phase_in(name) == TRAIN
        } - {None}
    return phases.pop() if len(phases) == 1 else None


def _parameters_with_defaults(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function that have a default, with it."""
    arguments = getattr(function, "args", None)
    if isinstance(arguments, ast.arguments):
        positional = [*getattr(arguments, "posonlyargs", ()), *arguments.args]
        defaults = [
            *zip(reversed(positional), reversed(arguments.defaults)),
            *zip(arguments.kwonlyargs, arguments.kw_defaults),
        ]
        yield from ((parameter.arg, default) for parameter, default in defaults if default is not None)


def passes_phase_on(function: ast.AST | None, call: ast.Call) -> bool:
    """Return True if a call passes on the phase of its caller: ``is_training=is_training``."""
    return any(
        isinstance(value, (ast.Name, ast.Attribute)) and is_phase_switch(name) or name == "mode"
        for name, value in argument_pairs(function, call)
    )


def argument_pairs(function: ast.AST | None, call: ast.Call) -> list[tuple[str, ast.expr]]:
    """Return the arguments of a call with the names of their parameters."""
    names = [p.arg for p in parameters_of(function)]
    args = call.args[1:] if last_name(call.func) == "partial" else call.args
    is_made = getattr(function, "name", "") == "__init__"
    if names[:1] in (["self"], ["cls"]) and (is_made or isinstance(call.func, ast.Attribute)):
        names = names[1:]
    return list(zip(names, args)) + [(k.arg or "", k.value) for k in call.keywords]


def tested_phase(parent: ast.AST, child: ast.AST) -> str | None:
    """Return the phase in which the test around some code runs it."""
    yes, no = branch_phases(parent.test)  # type: ignore[attr-defined]
    for part, phase in ((parent.body, yes), (parent.orelse, no)):  # type: ignore[attr-defined]
        if any(child is one for one in (part if isinstance(part, list) else [part])):
            return phase
    return None


def data_words_of_dataset(node: ast.AST, names: Names) -> list[str]:
    """Return the names and strings of which a dataset is made: ``x_train``, ``'train.csv'``."""
    words: list[str] = []
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
                for value in values_of(node):
                    words += words_in_expression(value)
            todo.append(node.func)
        elif isinstance(node, ast.Name):
            todo += [
                b.node
                for b in names.bindings_of_name(node.id, names.place(node)) or ()
                if b.kind == "value" and b.node is not None
            ]
    return words


def words_in_expression(node: ast.AST) -> list[str]:
    """Return the names and short strings in an expression, except those of numbers and choices."""
    words = []
    for part in ast.walk(node):
        if isinstance(part, (ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda, ast.Subscript)):
            return []
        text = boxed_constant(part)
        if isinstance(part, (ast.Name, ast.Attribute)):
            words.append(last_name(part))
        elif text and isinstance(text[0], str) and len(text[0]) < 80:
            words.append(text[0])
    return [word for word in words if not _OF_NUMBERS.search(word)]
