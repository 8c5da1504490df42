"""Taking statements, imported names and arguments out of a script."""
from __future__ import annotations

import ast
import re
from typing import AbstractSet, Iterable, List, NamedTuple, Optional

from .edits import keyword_start
from .scopes import Scopes
from .source import Edit, Source

_LONGEST = 100
_TO_LINTER = re.compile(r'#[ \t]*(?:pylint:|noqa\b|isort:|yapf:|type:[ \t]*ignore)[^#\r\n]*(?=[\r\n]|\Z)')


def remove_statements(source: Source, scopes: Scopes, gone: Iterable[ast.stmt]) -> List[Edit]:
    """Take statements out, each with its line; a comment behind it stays, unless it speaks to a linter alone.

    Where nothing else is left in a block, ``pass`` stands there.

    Args:
        source: the file.
        scopes: its scopes.
        gone: the statements.
    """
    statements = set(gone)
    edits: List[Edit] = []
    for statement in sorted(statements, key=source.start):
        block = block_of(scopes, statement)
        needed = block[0] is statement and statements.issuperset(block) and not isinstance(
            scopes.parents[statement], ast.Module)
        edits.append(_without(source, statement, needed))
    return edits


def block_of(scopes: Scopes, statement: ast.stmt) -> List[ast.stmt]:
    """The statements of the block in which a statement stands."""
    for _, value in ast.iter_fields(scopes.parents[statement]):
        if isinstance(value, list) and any(item is statement for item in value):
            return value
    return [statement]


def _without(source: Source, statement: ast.stmt, needed: bool) -> Edit:
    text, start, end = source.text, source.start(statement), source.end(statement)
    first, following = source.line_start(start), source.next_line(end)
    behind = source.skip_blanks(end)
    to_linter = _TO_LINTER.match(text, behind)
    behind = to_linter.end() if to_linter else behind
    before = text[first:start].rstrip(' \t\f')
    if needed or before and not before.endswith(';'):
        return Edit(start, end, 'pass')
    if text[behind:behind + 1] == ';':
        behind = source.skip_blanks(behind + 1)
    if text[behind:behind + 1] not in ('', '\r', '\n', '#'):  # another statement in the same line
        return Edit(start, behind, '')
    if before:  # its semicolon goes with it
        return Edit(first + len(before[:-1].rstrip(' \t\f')), end, '')
    return Edit(start, behind, '') if text[behind:behind + 1] == '#' else Edit(first, following, '')


def remove_names(source: Source, statement: ast.stmt, gone: AbstractSet[int]) -> Optional[Edit]:
    """Take some names out of an import that has others.

    Args:
        source: the file.
        statement: an ``import`` or ``from ... import``.
        gone: the places of the names in it.

    Returns:
        the edit; None where a comment stands among the names.
    """
    assert isinstance(statement, (ast.Import, ast.ImportFrom))
    start, end = source.start(statement), source.end(statement)
    if source.comments(start, end):
        return None
    head = 'import ' if isinstance(statement, ast.Import) else 'from %s%s import ' % (
        '.' * statement.level, statement.module or '')
    kept = [a.name + (' as ' + a.asname if a.asname else '')
            for index, a in enumerate(statement.names) if index not in gone]
    new = head + ', '.join(kept)
    indent = start - source.line_start(start)
    if indent + len(new) > _LONGEST and isinstance(statement, ast.ImportFrom):
        between = ',' + source.newline + ' ' * (indent + 4)
        new = '%s(%s%s)' % (head, between[1:], between.join(kept))
    return Edit(start, end, new)


def remove_keywords(source: Source, call: ast.Call, gone: AbstractSet[ast.keyword]) -> Optional[List[Edit]]:
    """Take keyword arguments out of a call, with the commas that part them from the others.

    Returns:
        the edits; None where a comment stands in what would go.
    """
    spans = [_span(source, call, value, None) for value in call.args]
    spans += [_span(source, call, keyword.value, keyword) for keyword in call.keywords]
    edits: List[Edit] = []
    start: Optional[int] = None
    last_kept: Optional[int] = None
    for span in sorted(s for s in spans if s):
        is_gone = span.keyword in gone
        if is_gone and start is None:
            start = span.start
        elif not is_gone:
            if start is not None:
                edits.append(Edit(start, span.start, ''))
            start, last_kept = None, span.end
    if start is not None:
        end = max(s.end for s in spans if s)
        if last_kept is None:
            following = source.skip_trivia(end)
            end = following + 1 if source.text[following] == ',' else end
        edits.append(Edit(start if last_kept is None else last_kept, end, ''))
    if None in spans or any(source.comments(e.start, e.end) for e in edits):
        return None
    return edits


class _Span(NamedTuple):
    """Where an argument stands, with its name and the parentheses around it."""
    start: int
    end: int
    keyword: Optional[ast.keyword]


def _span(source: Source, call: ast.Call, value: ast.expr, keyword: Optional[ast.keyword]) -> Optional[_Span]:
    start: Optional[int] = source.start(value)
    if keyword is not None:
        start = keyword_start(source, keyword) if keyword.arg else None
    end, close = source.end(value), source.end(call) - 1
    following = source.skip_trivia(end)
    while following < close and source.text[following] == ')':
        end = following + 1
        following = source.skip_trivia(end)
    return None if start is None else _Span(start, end, keyword)
