"""Start and end positions of nodes on Python 3.7, computed only for the statements that need them.

To compute all positions takes longer than the rest of the conversion, and rules ask for few. A group is one statement
with its lines, or several statements that share lines.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from typing import NamedTuple, Sequence

from .node_ends import add_ends

_BLOCKS = ("body", "orelse", "finalbody")


class _StatementGroup(NamedTuple):
    """Statements, the number of their first line, and the end of their text with the text up to the next statement."""

    statements: list[ast.stmt]
    line: int
    end: int


class Places:
    """The nodes of one file.

    Args:
        tree: of the file, as Python has made it.
        text: its text.
        line_starts: the offsets of its lines.
    """

    def __init__(self, tree: ast.Module, text: str, line_starts: Sequence[int]) -> None:
        self._tree, self._text, self._line_starts = tree, text, line_starts
        self._beginnings: dict[int, tuple[list[int], list[int]]] = {}  # by the id of a block

    def set_positions(self, node: ast.AST) -> None:
        """Set the start and end of a node and of all others of its group.

        Raises:
            ValueError: nodes and text do not match.
        """
        line = getattr(node, "lineno", 0)  # not right for what is inside an f-string
        for group in reversed(self._statement_groups_around(line)):
            try:
                add_ends(
                    ast.Module(body=group.statements, type_ignores=[]),
                    self._text[self._line_starts[group.line - 1] : group.end],
                    group.line,
                )
            except ValueError:
                continue  # its text begins or ends elsewhere: the group around it sets these positions again
            if getattr(node, "end_lineno", None):
                return
        add_ends(self._tree, self._text)

    def _statement_groups_around(self, line: int) -> list[_StatementGroup]:
        """Return the groups of statements that a line may belong to, each inside the one before."""
        groups: list[_StatementGroup] = []
        block: list[ast.stmt] = self._tree.body
        end = len(self._text)
        while True:
            heads, lines = self._begin_lines(block)
            index = bisect_right(lines, line) - 1
            if index < 0:
                return groups
            behind = heads[index + 1] if index + 1 < len(heads) else None
            if behind is not None:
                end = self._line_starts[lines[index + 1] - 1]
            groups.append(_StatementGroup(block[heads[index] : behind], lines[index], end))
            if len(groups[-1].statements) > 1:
                return groups
            blocks = _blocks(groups[-1].statements[0])
            at = bisect_right([first for first, _ in blocks], line)
            if not at:
                return groups
            block = blocks[at - 1][1]
            if at < len(blocks):
                end = self._line_starts[blocks[at][0] - 1]

    def _begin_lines(self, block: list[ast.stmt]) -> tuple[list[int], list[int]]:
        """Return the indexes of the statements of a block that begin a line, and these lines.

        Other statements follow something on their line, or begin with a string of several lines: Python 3.7 records the
        last one.
        """
        known = self._beginnings.get(id(block))
        if known is None:
            heads = [index for index, statement in enumerate(block) if self._begins_line(statement)]
            known = self._beginnings[id(block)] = heads, [block[index].lineno for index in heads]
        return known

    def _begins_line(self, statement: ast.stmt) -> bool:
        start, column = self._line_starts[statement.lineno - 1], statement.col_offset
        return column == 0 or column > 0 and self._text[start : start + column].isspace()


def _blocks(statement: ast.stmt) -> list[tuple[int, list[ast.stmt]]]:
    """Return the blocks of a statement with the line of the first statement in each, or of its handler."""
    blocks = [(block[0].lineno, block) for block in (getattr(statement, name, ()) for name in _BLOCKS) if block]
    return sorted(
        blocks + [(handler.lineno, handler.body) for handler in getattr(statement, "handlers", ())],
        key=lambda numbered: numbered[0],
    )
