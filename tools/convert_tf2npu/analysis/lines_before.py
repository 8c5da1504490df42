"""Find the place for a line before a statement."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from .preamble import is_setting

_CODING = re.compile(r"#.*?coding[:=][ \t]*[-\w.]+")
_PASSED = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete)


def position_of_line_before(context: Context, statement: ast.stmt) -> tuple[int, str] | None:
    """Return the position and the indentation for a line before a statement and the comments above it.

    Simple statements that semicolons join to it stay behind that line, too.

    Returns:
        None if the statement shares its line with another one before it: an import, a setting, or one that contains it.
    """
    source = context.source
    start = source.start_with_decorators(_first_statement_of_line(context, statement))
    position = source.line_start(start)
    indent = source.text[position:start]
    if indent.strip():
        return None
    while position > 0:
        above = source.line_start(position - 1)
        line = source.text[above:position]
        if not line.startswith(indent + "#") or line.startswith("#!") or _CODING.match(line):
            break
        position = above
    return position, indent


def _first_statement_of_line(context: Context, statement: ast.stmt) -> ast.stmt:
    """Return the first of the statements that semicolons join to one behind them, without imports and settings."""
    source, names = context.source, context.names
    siblings = [s for s in ast.iter_child_nodes(names.parents[statement]) if isinstance(s, ast.stmt)]
    for before in reversed(siblings[: siblings.index(statement)]):
        joins = source.line_start(source.end(before)) == source.line_start(source.start(statement))
        if not joins or isinstance(before, _PASSED) or is_setting(names, before):
            break
        statement = before
    return statement
