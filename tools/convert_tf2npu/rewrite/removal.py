"""Remove statements and arguments."""

from __future__ import annotations

import ast
import re
from typing import Collection, Iterable

from ..semantics.module_index import Names
from ..syntax.expressions import values_of
from ..syntax.source import Edit, Source
from .call_edits import argument_end, argument_start

_TO_LINTER = re.compile(r"#[ \t]*(?:pylint:|noqa\b|isort:|yapf:|type:[ \t]*ignore)[^#\r\n]*(?=[\r\n]|\Z)")


def remove_statements(source: Source, scopes: Names, statements: Iterable[ast.stmt]) -> list[Edit]:
    """Return the edits that remove statements with their lines.

    A comment after a statement stays, unless it is only for a linter. An empty block gets ``pass``.

    Args:
        source: the file.
        scopes: its scopes.
        statements: the statements.
    """
    removed = set(statements)
    edits: list[Edit] = []
    for statement in sorted(removed, key=source.start):
        block = block_of(scopes, statement)
        needed = (
            block[0] is statement
            and removed.issuperset(block)
            and not isinstance(scopes.parents[statement], ast.Module)
        )
        edits.append(_edit_removing_statement(source, statement, needed))
    return edits


def block_of(scopes: Names, statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements of the block that contains a statement."""
    for _, value in ast.iter_fields(scopes.parents[statement]):
        if isinstance(value, list) and any(item is statement for item in value):
            return value
    return [statement]


def _edit_removing_statement(source: Source, statement: ast.stmt, needs_pass: bool) -> Edit:
    text, start, end = source.text, source.start(statement), source.end(statement)
    first, following = source.line_start(start), source.next_line(end)
    behind = source.skip_blanks(end)
    to_linter = _TO_LINTER.match(text, behind)
    behind = to_linter.end() if to_linter else behind
    before = text[first:start].rstrip(" \t\f")
    if needs_pass or before and not before.endswith(";"):
        return Edit(start, end, "pass")
    if text[behind : behind + 1] == ";":
        behind = source.skip_blanks(behind + 1)
    if text[behind : behind + 1] not in ("", "\r", "\n", "#"):  # another statement in the same line
        return Edit(start, behind, "")
    if before:  # remove its semicolon too
        return Edit(first + len(before[:-1].rstrip(" \t\f")), end, "")
    return Edit(start, behind, "") if text[behind : behind + 1] == "#" else Edit(first, following, "")


def remove_arguments(source: Source, call: ast.Call, arguments: Collection[ast.expr]) -> list[Edit]:
    """Return the edits that remove arguments of a call with their commas.

    A comment before the last arguments stays.

    Args:
        source: the file.
        call: the call.
        arguments: the values of the arguments.
    """
    edits: list[Edit] = []
    start: int | None = None
    last_kept: int | None = None
    end = 0
    for value in sorted(values_of(call), key=source.start):
        begin, end = argument_start(source, call, value), argument_end(source, call, value)
        if value in arguments:
            start = begin if start is None else start
            continue
        if start is not None:
            edits.append(Edit(start, begin, ""))
        start, last_kept = None, end
    if start is None:
        return edits
    if last_kept is not None and not source.comments(last_kept, start):
        return edits + [Edit(last_kept, end, "")]
    comma = source.skip_trivia(end)
    if source.text[comma] != ",":
        return edits + [Edit(start, end, "")]
    if source.comments(end, comma):
        return edits + [Edit(start, end, ""), Edit(comma, comma + 1, "")]
    return edits + [Edit(start, comma + 1, "")]
