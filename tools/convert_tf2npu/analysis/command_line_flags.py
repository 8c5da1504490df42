"""Flags of the command line that decide a value: ``FLAGS.num_gpus`` is ``--num_gpus``."""

from __future__ import annotations

import ast
import re
from typing import Iterable

from ..project.context import Context
from ..semantics.module_index import ModuleIndex
from ..syntax.expressions import last_name

_DEFINED = re.compile(rb"\bDEFINE_\w+\s*\(\s*(?:name\s*=\s*)?['\"](\w+)|['\"]--([A-Za-z][\w-]*)['\"]")


def flags_of(context: Context, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the flags whose values the expressions read, as users write them (``--num_gpus``).

    Args:
        context: the file.
        nodes: the expressions where data flow ends.
    """
    words = {last_name(part) for node in nodes for part in ast.walk(node)} - {""}
    return {flag for word, flag in _flags(context).items() if word in words}


def _flags(context: Context) -> dict[str, str]:
    """Return the flags of the project by the name of their value."""
    project, path = context.names.project, context.names.path
    if project is None or path not in project.paths:
        return _defined(context.source.text.encode("utf-8", "replace"))
    return project.once(_of_project)


def _of_project(project: ModuleIndex) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in project.paths:
        found.update(_defined(project.raw(path)) if path.endswith(".py") else {})
    return found


def _defined(raw: bytes) -> dict[str, str]:
    words = [(match[1] or match[2]).decode() for match in _DEFINED.finditer(raw)]
    return {word.replace("-", "_"): "--" + word for word in words}
