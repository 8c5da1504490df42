"""Flags of the command line that decide a value: ``FLAGS.num_gpus`` is ``--num_gpus``."""

from __future__ import annotations

import ast
import re
from typing import Iterable

from ..project.context import Context
from ..semantics.module_index import ModuleIndex
from ..syntax.expressions import last_name

_DEFINED = re.compile(rb"\bDEFINE_\w+\s*\(\s*(?:name\s*=\s*)?['\"](\w+)|['\"]--([A-Za-z][\w-]*)['\"]")


def flags_read_by(context: Context, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the flags whose values the expressions read, as users write them (``--num_gpus``).

    Args:
        context: the file.
        nodes: the expressions where data flow ends.
    """
    words = {last_name(part) for node in nodes for part in ast.walk(node)} - {""}
    return {flag for word, flag in _flags_by_value_name(context).items() if word in words}


def _flags_by_value_name(context: Context) -> dict[str, str]:
    """Return the flags of the project by the name of their value; those of the program in place of others."""
    project, path = context.names.project, context.names.path
    if not context.names.is_in_project:
        return _options_by_value_name(context.source.text.encode("utf-8", "replace"))
    near = project.with_imports(path) | project.with_importers({path})
    by_value: dict[str, str] = {}
    for _, flags in sorted(
        project.once(_options_by_file).items(), key=lambda entry: (entry[0] in near, entry[0] == path)
    ):
        by_value.update(flags)
    return by_value


def _options_by_file(project: ModuleIndex) -> dict[str, dict[str, str]]:
    return {path: _options_by_value_name(project.raw(path)) for path in project.paths if path.endswith(".py")}


def _options_by_value_name(raw: bytes) -> dict[str, str]:
    """Return the options that a script defines, such as ``--batch-size``, by the names of their values."""
    parses = b"add_argument" in raw or b"option(" in raw  # other scripts may pass options to this one
    if not parses and b"DEFINE_" not in raw:
        return {}
    words = [(m[1] or m[2]).decode() for m in _DEFINED.finditer(raw) if m[1] or parses]
    return {word.replace("-", "_"): "--" + word for word in words}
