"""Find the texts of the programs that train and may run a part of a file."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from ..project.outlines import GUARD, MODULE
from ..semantics.module_index import ModuleIndex
from ..syntax.expressions import is_main_guard
from .code_links import Part, outline_of_file
from .eager_training import texts_of_file_and_importers
from .entry_points import is_program, programs_importing
from .reached_code import reached_code

_TRAINS = re.compile(
    rb"\b(?:Session|InteractiveSession|MonitoredTrainingSession|Supervisor|Estimator|TPUEstimator|train_and_evaluate|"
    rb"GradientTape)\(|\.(?:fit|fit_generator|train_on_batch)\("
)
_FRAMEWORK = re.compile(rb"tensorflow|keras")


def texts_of_first_training_program(context: Context, node: ast.AST) -> list[bytes]:
    """Return the files of the first program that trains and may run an expression of a file; none if there is none."""
    project, path = context.names.project, context.names.path
    own = context.source.text.encode("utf-8", "replace")
    if _FRAMEWORK.search(own) and _TRAINS.search(own):
        return texts_of_file_and_importers(context)
    if not context.names.is_in_project:
        return []
    part = Part(path, _outline_name_of(context, node))
    for program in [path, *programs_importing(project, path)]:
        parts = project.once(reached_code, program, not is_program(project, program))
        if (parts is None or part in parts) and _program_trains(project, program, parts):
            return [project.raw(file) for file in sorted(project.with_imports(program))]
    return []


def _program_trains(project: ModuleIndex, program: str, parts: frozenset[Part] | None) -> bool:
    """Return True if code that a program reaches trains; if that is not known, if its own file does."""
    for path in sorted(project.with_imports(program)) if parts is not None else [program]:
        raw = project.raw(path)
        for match in _TRAINS.finditer(raw) if _FRAMEWORK.search(raw) else ():
            name = project.once(outline_of_file, path).unit_at(raw.count(b"\n", 0, match.start()) + 1)
            if parts is None or Part(path, name) in parts:
                return True
    return False


def _outline_name_of(context: Context, node: ast.AST) -> str:
    """Return the name that the outline of the file has for the code around an expression."""
    name, around = MODULE, [node, *context.names.ancestors(node)]
    for child, parent in zip(around, around[1:]):
        if isinstance(parent, ast.Module) and is_main_guard(child):
            return GUARD
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(parent, ast.Module):
                return child.name
            name = child.name
        if isinstance(child, ast.ClassDef) and isinstance(parent, ast.Module):
            return f"{child.name}.{name}" if name else child.name
    return MODULE
