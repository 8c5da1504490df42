"""Notebooks: the code cells of an .ipynb file as one script, and edits of it back into the file.

The cells in their order are one script, with the lines of IPython masked (see :mod:`ipython_magics`), so that a cell
sees the names that earlier cells bind. Edits go into the JSON text itself, inside the strings that hold the lines of
the cells. Outputs, metadata, indentation, the order of keys, escapes and all other lines keep every byte.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Sequence

from .edits import Edit, sort_edits
from .json_text import LineStrings
from .notebook_cells import BOM, GAP, Cell, CellError, is_python_notebook, read_cells, read_notebook_json
from .source import Source, SourceError

_LINE_END = re.compile(r"\r\n|\r|\n")


class Notebook:
    """One notebook.

    Args:
        raw: the bytes of the file.

    Raises:
        CellError: it is no notebook, or a cell is not Python 3.
    """

    def __init__(self, raw: bytes) -> None:
        self._text, content = read_notebook_json(raw)
        self.cells = read_cells(self._text, content) if is_python_notebook(content) else []
        for cell in self.cells:
            try:
                Source(BOM + (cell.lead + cell.text).encode("utf-8"))
            except SourceError as error:
                raise CellError(error.message, error.line, error.col, cell.number)
            except UnicodeEncodeError as error:
                line = 1 + len(_LINE_END.findall(cell.text[: error.start]))
                raise CellError("it holds half of a surrogate pair", line, 0, cell.number)
        text = "".join(cell.lead + cell.text + GAP for cell in self.cells)
        self.script = BOM + text.encode("utf-8")
        self._first_lines = [1 + len(_LINE_END.findall(text[: cell.start])) for cell in self.cells]

    def cell_and_line(self, line: int) -> tuple[int, int]:
        """Return the number of the cell and the line in it for a line of the script."""
        index = max(bisect_right(self._first_lines, line) - 1, 0)
        return self.cells[index].number, line - self._first_lines[index] + 1

    def bytes_with_edits(self, edits: Sequence[Edit]) -> bytes:
        """Return the notebook's bytes with edits of the script made.

        Raises:
            CellError: an edit reaches over more than one cell.
        """
        pieces: list[str] = []
        done = 0
        for cell in self.cells:
            strings = LineStrings(self._text, cell.strings)
            for start, end, new in _edits_in_cell(cell, edits, cell is self.cells[-1]):
                first, last, written = strings.replacement(start, end, new)
                pieces += [self._text[done:first], written]
                done = last
        return ("".join(pieces) + self._text[done:]).encode("utf-8")


class CellPlaces:
    """Positions of cells in the file of a notebook.

    Args:
        raw: the bytes of the file.

    Raises:
        CellError: it is no notebook.
    """

    def __init__(self, raw: bytes) -> None:
        self.text, content = read_notebook_json(raw)
        self._cells = {cell.number: cell for cell in read_cells(self.text, content)}

    def offset(self, number: int, line: int, col: int) -> int:
        """Return the offset in the file's text of a position in a code cell, line and column from 1.

        Raises:
            KeyError: there is no such cell, or it is empty.
        """
        cell = self._cells[number]
        starts = [0] + [m.end() for m in _LINE_END.finditer(cell.text)]
        start = starts[min(line, len(starts)) - 1] + col - 1
        return LineStrings(self.text, cell.strings).replacement(start, start, "")[0]


def _edits_in_cell(cell: Cell, edits: Sequence[Edit], is_last: bool) -> list[tuple[int, int, str]]:
    """Return the edits of a cell by their offsets in it; insertions at one offset are merged."""
    local_edits: list[tuple[int, int, str]] = []
    size = len(cell.text)
    beyond = size + len(GAP) + is_last  # an edit at the end of the script belongs to the last cell
    for edit in sort_edits(edits):
        start, end, new = edit.start - cell.start, edit.end - cell.start, edit.new
        if -len(cell.lead) <= start == end < 0:  # a line before the block around the cell
            start, end, new = 0, 0, cell.indent + new
        if not 0 <= start < beyond:
            continue
        if start > size:  # after the line end of the last line, where a new line goes
            start, end, new = size, size, "\n" + (new[:-1] if new.endswith("\n") else new)
        elif end > size + len(GAP):
            raise CellError("a change here would reach into the next cell", cell=cell.number)
        end = min(end, size)
        if local_edits and start == end == local_edits[-1][1] and local_edits[-1][0] == local_edits[-1][1]:
            new = local_edits.pop()[2] + new
        local_edits.append((start, end, new))
    return local_edits
