"""Flags of the command line that decide a value: ``FLAGS.num_gpus`` is ``--num_gpus``."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.module_index import ModuleIndex
from ..semantics.value_flow import origins
from ..syntax.expressions import last_name

_DEFINED = re.compile(rb"\bDEFINE_\w+\s*\(\s*(?:name\s*=\s*)?['\"](\w+)|['\"]--([A-Za-z][\w-]*)['\"]")


def flag_of(context: Context, node: ast.AST, where: Where) -> str | None:
    """Return the flag that is the value of an expression, as users write it (``--num_gpus``), or None.

    Args:
        context: the file.
        node: the expression.
        where: its place.
    """
    found = {last_name(origin.node) for origin in origins(node, where, context.names)}
    return _flags(context).get(found.pop()) if len(found) == 1 else None


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
