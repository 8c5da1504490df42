"""Find the expression in a function that is true if the function runs for training."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..syntax.source import one_line
from .phase_words import EVAL, TRAIN, branch_phases, parameters_of, training_parameter

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def training_flag_text(context: Context, node: ast.AST) -> str | None:
    """Return the text of an expression that is true at a node if the code runs for training, or None."""
    names, source = context.names, context.source
    place = names.place(node)
    for function in [p for p in names.ancestors(node) if isinstance(p, _FUNCTIONS)]:
        for part in ast.walk(function):
            if isinstance(part, (ast.If, ast.IfExp)):
                yes, no = branch_phases(part.test)
                if (
                    yes == TRAIN
                    and no == EVAL
                    and not isinstance(part.test, ast.BoolOp)
                    and all(names.bindings_of_name(n.id, place) for n in ast.walk(part.test) if isinstance(n, ast.Name))
                ):
                    return one_line(source.segment(part.test))
        by_name = training_parameter(function)
        if by_name:
            return by_name
        if any(p.arg == "mode" for p in parameters_of(function)):
            keys = next(
                (n for n in ast.walk(names.tree) if isinstance(n, ast.Attribute) and n.attr == "ModeKeys"), None
            )
            if keys is not None:
                return f"mode == {source.segment(keys)}.TRAIN"
    return None
