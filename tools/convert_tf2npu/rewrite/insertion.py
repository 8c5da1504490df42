"""Find positions for added statements: before and after a statement, and at the end of a body."""

from __future__ import annotations

import ast

from ..analysis.lines_before import position_of_line_before
from ..analysis.preamble import is_flag, last_setting
from ..project.context import Context
from ..semantics.scopes import own_returns
from ..syntax.expressions import boxed_constant, is_literal_statement
from ..syntax.source import Edit

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PASSED = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete)


def first_statement_after_preamble(context: Context, body: ast.AST) -> ast.stmt | None:
    """Return the first statement behind the preamble of a body that is not an import or a definition."""
    statements: list[ast.stmt] = body.body  # type: ignore[attr-defined]
    is_module = isinstance(body, ast.Module)
    settings = last_setting(context.names, statements, lambda s: is_module and isinstance(s, _DEFINITIONS))
    for statement in statements[settings + 1 :]:
        if isinstance(statement, _PASSED) or is_literal_statement(statement):
            continue
        if is_module and _only_defines(context, statement):
            continue
        return statement
    return None


def _only_defines(context: Context, statement: ast.stmt) -> bool:
    """Return True if a statement of a module defines or imports something and calls nothing, or defines a flag."""
    if isinstance(statement, ast.Try):
        return all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in statement.body)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(n, ast.Call) for n in ast.walk(statement))
    return isinstance(statement, _DEFINITIONS) or is_flag(context.names, statement)


def edit_adding_before(context: Context, statement: ast.stmt, *lines: str) -> Edit:
    """Return the edit that adds statements before another one, in separate lines if possible.

    Args:
        context: the file.
        statement: the statement.
        lines: those to add.
    """
    place = position_of_line_before(context, statement)
    if place is None:  # behind an import and a semicolon, or in the line of an if, for, with or def
        start = context.source.start(statement)
        return Edit(start, start, "".join(line + "; " for line in lines))
    position, indent = place
    return Edit(position, position, "".join(indent + line + context.source.newline for line in lines))


def edit_adding_after(context: Context, statement: ast.stmt, line: str) -> Edit | None:
    """Return the edit that adds a line after a statement; None if the statement shares its lines with others."""
    source = context.source
    start, end = source.start(statement), source.end(statement)
    indent, following = source.text[source.line_start(start) : start], source.next_line(end)
    behind = source.text[end:following].strip()
    if indent.strip() or behind and not behind.startswith("#"):
        return None
    is_last = not source.text[:following].endswith(("\n", "\r"))
    return Edit(following, following, source.newline * is_last + indent + line + source.newline)


def edits_adding_at_end(context: Context, body: ast.AST, *lines: str) -> list[Edit]:
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
    if any(
        r.value is not None and boxed_constant(r.value) is None and not isinstance(r.value, ast.Name) for r in returns
    ):
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
