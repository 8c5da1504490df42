"""Find positions for added statements: before a statement, and at the end of a body."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from ..semantics.scopes import own_returns
from ..syntax.expressions import constant
from ..syntax.source import Edit
from .preamble import is_flag, is_setting, last_setting

_CODING = re.compile(r"#.*?coding[:=][ \t]*[-\w.]+")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PASSED = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete)


def first_at_work(context: Context, body: ast.AST) -> ast.stmt | None:
    """Return the first statement behind the preamble of a body that is not an import or a definition."""
    statements: list[ast.stmt] = body.body  # type: ignore[attr-defined]
    is_module = isinstance(body, ast.Module)
    settings = last_setting(context.names, statements, lambda s: is_module and isinstance(s, _DEFINITIONS))
    for statement in statements[settings + 1 :]:
        if isinstance(statement, _PASSED) or _is_string(statement):
            continue
        if is_module and _defines(context, statement):
            continue
        return statement
    return None


def _is_string(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and constant(statement.value) is not None


def _defines(context: Context, statement: ast.stmt) -> bool:
    """Return True if a statement of a module defines or imports something and calls nothing, or defines a flag."""
    if isinstance(statement, ast.Try):
        return all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in statement.body)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(n, ast.Call) for n in ast.walk(statement))
    return isinstance(statement, _DEFINITIONS) or is_flag(context.names, statement)


def added_before(context: Context, statement: ast.stmt, *lines: str) -> Edit:
    """Return the edit that adds statements before another one, in separate lines if possible.

    Args:
        context: the file.
        statement: the statement.
        lines: those to add.
    """
    place = line_before(context, statement)
    if place is None:  # behind an import and a semicolon, or in the line of an if, for, with or def
        start = context.source.start(statement)
        return Edit(start, start, "".join(line + "; " for line in lines))
    position, indent = place
    return Edit(position, position, "".join(indent + line + context.source.newline for line in lines))


def line_before(context: Context, statement: ast.stmt) -> tuple[int, str] | None:
    """Return the position and the indentation for a line before a statement and the comments above it.

    Simple statements that semicolons join to it stay behind that line, too.

    Returns:
        None if the statement shares its line with another one before it: an import, a setting, or one that contains it.
    """
    source = context.source
    start = source.begin(_first_of_line(context, statement))
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


def _first_of_line(context: Context, statement: ast.stmt) -> ast.stmt:
    """Return the first of the statements that semicolons join to one behind them, without imports and settings."""
    source, names = context.source, context.names
    siblings = [s for s in ast.iter_child_nodes(names.parents[statement]) if isinstance(s, ast.stmt)]
    for before in reversed(siblings[: siblings.index(statement)]):
        joins = source.line_start(source.end(before)) == source.line_start(source.start(statement))
        if not joins or isinstance(before, _PASSED) or is_setting(names, before):
            break
        statement = before
    return statement


def is_main_guard(node: ast.AST) -> bool:
    """Return True if a statement is ``if __name__ == '__main__':``."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def at_end(context: Context, body: ast.AST, *lines: str) -> list[Edit]:
    """Return the edits that add lines at the end of a body: after the last statement and before each return.

    Args:
        context: the file.
        body: the function or module.
        lines: the lines, indented as in a module.

    Returns:
        The edits; none if a return computes something, which may need what the lines end.
    """
    source = context.source
    statements: list[ast.stmt] = body.body  # type: ignore[attr-defined]
    returns = own_returns(body)
    if any(r.value is not None and constant(r.value) is None and not isinstance(r.value, ast.Name) for r in returns):
        return []
    edits: list[Edit] = []
    for statement in returns:
        at = source.start(statement)
        column = source.text[source.line_start(at) : at]
        if column.strip():
            return []
        edits.append(Edit(at, at, "".join(line + source.newline + column for line in lines)))
    last = statements[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return edits
    start = source.start(last)
    indent = source.text[source.line_start(start) : start]
    if indent.strip():
        return []
    end = source.next_line(source.end(last))
    if source.text[:end].endswith(("\n", "\r")):
        return edits + [Edit(end, end, "".join(indent + line + source.newline for line in lines))]
    return edits + [Edit(end, end, "".join(source.newline + indent + line for line in lines))]
