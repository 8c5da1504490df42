"""Where the nodes of a file start and end in Python 3.7, found out for those parts of it that somebody asks for.

That takes longer than all else that is done to a file, and as a rule little of it is asked for. A part is one or more
whole statements of the module.
"""
from __future__ import annotations

import ast
from bisect import bisect_right
from typing import List, Sequence

from .node_ends import add_ends


class Places:
    """The nodes of one file.

    Args:
        tree: of the file, as Python has made it.
        text: its text.
        line_starts: the offsets of its lines.
    """

    def __init__(self, tree: ast.Module, text: str, line_starts: Sequence[int]) -> None:
        self._tree, self._text, self._line_starts = tree, text, line_starts
        # Others do not begin a line, or begin with a string of several lines, of which Python 3.7 reports the last.
        self._heads = [index for index, statement in enumerate(tree.body) if statement.col_offset == 0]
        self._lines = [tree.body[index].lineno for index in self._heads]

    def find(self, node: ast.AST) -> None:
        """Let a node, and all others of its part, tell where they start and end.

        Raises:
            ValueError: nodes and text do not match.
        """
        part = bisect_right(self._lines, getattr(node, 'lineno', 0)) - 1  # not right for what is inside an f-string
        if part >= 0:
            try:
                self._find_in(part)
            except ValueError:
                pass  # its text begins or ends elsewhere; that of the whole file does not
        if not hasattr(node, 'end_lineno'):
            add_ends(self._tree, self._text)

    def _find_in(self, part: int) -> None:
        heads, lines = self._heads, self._lines
        is_last = part + 1 == len(heads)
        body: List[ast.stmt] = self._tree.body[heads[part]:None if is_last else heads[part + 1]]
        end = len(self._text) if is_last else self._line_starts[lines[part + 1] - 1]
        text = self._text[self._line_starts[lines[part] - 1]:end]
        add_ends(ast.Module(body=body, type_ignores=[]), text, lines[part])
