"""The words and tests that distinguish training from evaluation and prediction."""

from __future__ import annotations

import ast
import functools
import re
from typing import Iterator, NamedTuple

from ..syntax.expressions import boxed_constant, last_name

TRAIN, EVAL, PREDICT = "training", "evaluation", "prediction"
OTHER, PREPARE = "other code", "preprocessing"  # that reads a dataset
_WORDS = {
    TRAIN: {"train", "training", "trn"},
    EVAL: {
        "eval",
        "evaluate",
        "evaluation",
        "evaluating",
        "valid",
        "validation",
        "validate",
        "val",
        "test",
        "testing",
        "tst",
        "dev",
    },
    PREDICT: {"predict", "prediction", "predicting", "predictions", "infer", "inference", "serving", "serve"},
}
# Words beside it in the name of a boolean: is_training, do_eval, train_mode.
_BESIDE = {"is", "do", "in", "for", "mode", "phase", "flag", "run", "only", "self", "be", "should", "now"}
_UNCLEAR = ("valid", "val", "dev")  # on their own they have other meanings too
_MODE_KEYS = {"TRAIN": TRAIN, "EVAL": EVAL, "PREDICT": PREDICT, "INFER": PREDICT}
SWITCHES = ("is_training", "training", "is_train", "train", "is_train_mode", "train_mode", "do_train")
_MODES = (
    "mode",
    "split",
    "subset",
    "phase",
    "stage",
    "partition",
    "dataset_split",
    "split_name",
    "data_split",
    "set_name",
    "run_mode",
    "which",
)


class BranchPhases(NamedTuple):
    """The phase in which a test is true, and the one in which it is false, if known."""

    yes: str | None
    no: str | None


@functools.lru_cache(maxsize=4096)
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()))


def phases_in(name: str) -> set[str]:
    """Return the phases in the words of a name."""
    words = set(_words_of(name))
    return {phase for phase, those in _WORDS.items() if words & those}


def phase_in(name: str) -> str | None:
    """Return the one phase in a name, or None."""
    phases = phases_in(name)
    return phases.pop() if len(phases) == 1 else None


def branch_phases(test: ast.expr) -> BranchPhases:
    """Return the meaning of a test for the phase."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = branch_phases(test.operand)
        return BranchPhases(inner.no, inner.yes)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        for side in (test.left, test.comparators[0]):
            phase = phase_of_mode_value(side)
            if phase and isinstance(test.ops[0], (ast.Eq, ast.Is)):
                return BranchPhases(phase, EVAL if phase == TRAIN else None)
            if phase and isinstance(test.ops[0], (ast.NotEq, ast.IsNot)):
                return BranchPhases(EVAL if phase == TRAIN else None, phase)
        return BranchPhases(None, None)
    if isinstance(test, ast.BoolOp):
        parts = {branch_phases(v) for v in test.values} - {BranchPhases(None, None)}
        if len(parts) != 1:
            return BranchPhases(None, None)
        yes, no = parts.pop()
        return BranchPhases(yes, None) if isinstance(test.op, ast.And) else BranchPhases(None, no)
    if isinstance(test, (ast.Name, ast.Attribute)) and is_phase_switch(last_name(test)):
        phase = phase_in(last_name(test))
        if phase:
            return BranchPhases(phase, EVAL if phase == TRAIN else TRAIN)
    return BranchPhases(None, None)


def is_phase_switch(name: str) -> bool:
    """Return True if a name is a boolean about a phase: ``is_training``, ``do_eval``."""
    words = _words_of(name)
    return (
        name not in _UNCLEAR
        and any(phase_in(word) for word in words)
        and all(phase_in(word) or word in _BESIDE for word in words)
    )


def phase_of_mode_value(node: ast.AST) -> str | None:
    """Return the phase that a value names: ``tf.estimator.ModeKeys.TRAIN``, ``'train'``."""
    if isinstance(node, ast.Attribute) and node.attr in _MODE_KEYS:
        return _MODE_KEYS[node.attr]
    value = boxed_constant(node)
    return phase_in(value[0]) if value and isinstance(value[0], str) and len(value[0]) < 30 else None


def phase_of_parameter_value(parameter: str, value: ast.AST) -> str | None:
    """Return the phase of a call that passes a value for a parameter: ``is_training=True``, ``mode='eval'``."""
    literal = boxed_constant(value)
    if is_phase_switch(parameter) and literal and isinstance(literal[0], bool):
        phase = phase_in(parameter)
        if phase is None:
            return None
        return phase if literal[0] else (EVAL if phase == TRAIN else TRAIN)
    if parameter in _MODES or isinstance(value, ast.Attribute) and value.attr in _MODE_KEYS:
        return phase_of_mode_value(value)
    return None


def training_parameter(function: ast.AST) -> str | None:
    """Return the parameter that is true if a function is called for training, by its name, or None."""
    names = {arg.arg for arg in parameters_of(function)}
    return next((name for name in SWITCHES if name in names), None)


def parameters_of(function: ast.AST | None) -> Iterator[ast.arg]:
    """Return the parameters of a function."""
    arguments = getattr(function, "args", None)
    if isinstance(arguments, ast.arguments):
        yield from arguments.args
        yield from arguments.kwonlyargs


def phases_after_exits(statement: ast.stmt, body: tuple[ast.stmt, ...]) -> frozenset[str]:
    """Return the phases in which a statement of a block is reached after earlier statements exit in others."""
    phases = set()
    for before in body[: body.index(statement)]:
        if (
            isinstance(before, ast.If)
            and not before.orelse
            and isinstance(before.body[-1], (ast.Return, ast.Raise, ast.Continue))
        ):
            phase = branch_phases(before.test).no
            if phase:
                phases.add(phase)
    return frozenset(phases)
