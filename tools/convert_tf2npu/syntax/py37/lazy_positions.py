"""Where the nodes of a file start and end in Python 3.7, found out for those parts of it that somebody asks for.

That takes longer than all else that is done to a file, and as a rule little of it is asked for. A part is one statement
in its lines, or several where they share some.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from typing import NamedTuple, Sequence

from .node_ends import add_ends

_BLOCKS = ("body", "orelse", "finalbody")


class _Part(NamedTuple):
    """Statements, the number of their first line, and where their text ends, with what may stand between them and the
    next statement."""

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

    def find(self, node: ast.AST) -> None:
        """Let a node, and all others of its part, tell where they start and end.

        Raises:
            ValueError: nodes and text do not match.
        """
        for part in reversed(self._parts(getattr(node, "lineno", 0))):  # not right for what is inside an f-string
            try:
                add_ends(
                    ast.Module(body=part.statements, type_ignores=[]),
                    self._text[self._line_starts[part.line - 1] : part.end],
                    part.line,
                )
            except ValueError:
                continue  # its text begins or ends elsewhere: what was told is told anew by the part around it
            if getattr(node, "end_lineno", None):
                return
        add_ends(self._tree, self._text)

    def _parts(self, line: int) -> list[_Part]:
        """The parts that a line may belong to, each inside of the one before."""
        found: list[_Part] = []
        block: list[ast.stmt] = self._tree.body
        end = len(self._text)
        while True:
            heads, lines = self._begin_lines(block)
            index = bisect_right(lines, line) - 1
            if index < 0:
                return found
            behind = heads[index + 1] if index + 1 < len(heads) else None
            if behind is not None:
                end = self._line_starts[lines[index + 1] - 1]
            found.append(_Part(block[heads[index] : behind], lines[index], end))
            if len(found[-1].statements) > 1:
                return found
            blocks = _blocks(found[-1].statements[0])
            at = bisect_right([first for first, _ in blocks], line)
            if not at:
                return found
            block = blocks[at - 1][1]
            if at < len(blocks):
                end = self._line_starts[blocks[at][0] - 1]

    def _begin_lines(self, block: list[ast.stmt]) -> tuple[list[int], list[int]]:
        """The places of the statements of a block that begin a line, and these lines.

        Others stand behind something, or begin with a string of several lines, of which Python 3.7 reports the last.
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
    """The blocks of a statement, and the line of the first statement in each, or of its handler."""
    found = [(block[0].lineno, block) for block in (getattr(statement, name, ()) for name in _BLOCKS) if block]
    return sorted(
        found + [(handler.lineno, handler.body) for handler in getattr(statement, "handlers", ())],
        key=lambda each: each[0],
    )
