"""Code of the migrated text with the line numbers of the original.

Tracebacks, debuggers and ``inspect`` read a function's lines in its file, which
is the original. So each node of the migrated syntax tree gets the position that
its text has in the original. Added code gets the position of the insertion.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left, bisect_right
from types import CodeType
from typing import TYPE_CHECKING, Callable, Optional, Sequence

from npu_shim._tensorflow.types import Message

if TYPE_CHECKING:
    from convert_tf2npu.api import Edit


_LINE_END = re.compile(r"\r\n|\r|\n")


class Text:
    """A text with conversions between offsets and positions in syntax trees, whose columns are UTF-8 bytes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0] + [end.end() for end in _LINE_END.finditer(text)]
        self._ascii = text.isascii()

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a position. If it does not exist, return the nearest offset on its line."""
        index = min(max(line, 1), len(self._starts)) - 1
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.text)
        if not self._ascii:
            column = len(self.text[start:end].encode("utf-8")[: max(column, 0)].decode("utf-8", "ignore"))
        return min(start + max(column, 0), end)

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset."""
        line = bisect_right(self._starts, offset)
        before = self.text[self._starts[line - 1] : offset]
        return line, len(before if self._ascii else before.encode("utf-8"))


class Migrated:
    """A script before and after its migration.

    Args:
        text: the original.
        edits: the tool's edits, in order.
    """

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self._old = Text(text)
        self._edits: list[tuple[int, int]] = [(edit.start, edit.end) for edit in edits]
        self._new_spans: list[tuple[int, int]] = []
        pieces: list[str] = []
        done = length = 0
        for edit in edits:
            pieces += [text[done : edit.start], edit.new]
            length += edit.start - done
            self._new_spans.append((length, length + len(edit.new)))
            length += len(edit.new)
            done = edit.end
        self._new = Text("".join(pieces) + text[done:])
        self._new_starts = [start for start, _ in self._new_spans]

    @property
    def text(self) -> str:
        """The migrated text."""
        return self._new.text

    def compile_text(self, filename: str, optimize: int = -1) -> CodeType:
        """Compile the migrated text with the line numbers of the original.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: as compile() does.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser reports warnings for the original
            tree = ast.parse(self._new.text, filename)
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                self._move_to_original(node)
        return compile(tree, filename, "exec", dont_inherit=True, optimize=optimize)

    def _move_to_original(self, node: Message) -> None:
        start = self._old_start(self._new.offset(node.lineno, node.col_offset))
        node.lineno, node.col_offset = self._old.position(start)
        if getattr(node, "end_lineno", None) is not None:  # from Python 3.8 on
            end = max(start, self._old_end(self._new.offset(node.end_lineno, node.end_col_offset)))
            node.end_lineno, node.end_col_offset = self._old.position(end)

    def _old_start(self, offset: int) -> int:
        index = bisect_right(self._new_starts, offset) - 1
        if index < 0:
            return offset
        if offset < self._new_spans[index][1]:
            return self._original_offset_of_edit(index)
        return self._edits[index][1] + offset - self._new_spans[index][1]

    def _old_end(self, offset: int) -> int:
        index = bisect_left(self._new_starts, offset) - 1
        if index < 0:
            return offset
        if offset <= self._new_spans[index][1]:
            start, end = self._edits[index]
            return end if end > start else self._original_offset_of_edit(index)
        return self._edits[index][1] + offset - self._new_spans[index][1]

    def _original_offset_of_edit(self, index: int) -> int:
        """Return the offset of an edit in the original. Whole lines that are added belong to the line above."""
        start, end = self._edits[index]
        new_start, new_end = self._new_spans[index]
        whole_lines = start == end and self._new.text[new_start:new_end].endswith(("\n", "\r"))
        if whole_lines and start and self._old.text[start - 1] in "\r\n":
            return start - (2 if self._old.text[start - 2 : start] == "\r\n" else 1)
        return start

    def new_line(self, line: int) -> int:
        """Return the line in the migrated text for a line of the original."""
        offset = self._old.offset(line, 0)
        for (start, end), (_, new_end) in zip(reversed(self._edits), reversed(self._new_spans)):
            if start <= offset:
                return self._new.position(new_end + max(offset - end, 0))[0]
        return line


Lookup = Callable[[str], Optional[Migrated]]  # returns the migrated form of a file, None if it is not converted
