"""Notebooks: the code cells of an .ipynb file as one script, and edits of it back into the file.

The cells in their order are one script, with the lines of IPython masked (see :mod:`ipython_magics`), so that a cell
sees the names that earlier cells bind. Edits go into the JSON text itself, inside the strings that hold the lines of
the cells. Outputs, metadata, indentation, the order of keys, escapes and all other lines keep every byte.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from codecs import BOM_UTF8
from typing import Any, Iterator, NamedTuple, Sequence, Tuple

from .edits import Edit, ordered
from .ipython_magics import python_of
from .source import Source, SourceError

_BOM = BOM_UTF8  # before a script it makes Python ignore a coding cookie
# Between two cells, so that an edit after the last line of one cell and an edit before the first line of the next one
# have different offsets.
_GAP = "\n\n"
_BLANK = re.compile(r"[ \t\r\n]*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNIT = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)
_Span = Tuple[int, int]


class CellError(SourceError):
    """A notebook, or a cell of one, that cannot be read.

    Args:
        message: what is wrong.
        line: 1-based line in the cell, 0 if unknown.
        col: 1-based column, 0 if unknown.
        cell: its number, 0 for the notebook as a whole; then the line is that of the file.
    """

    def __init__(self, message: str, line: int = 0, col: int = 0, cell: int = 0) -> None:
        super().__init__(message, line, col)
        self.cell = cell

    def __reduce__(self) -> tuple:
        return CellError, (self.message, self.line, self.col, self.cell)


class Cell(NamedTuple):
    """A code cell.

    Attributes:
        number: its number among all cells.
        start: its offset in the script.
        text: its text with everything masked that is not Python.
        strings: the JSON strings that hold its lines.
        lead: the text before it in the script.
    """

    number: int
    start: int
    text: str
    strings: tuple[_Span, ...]
    lead: str = ""

    @property
    def end(self) -> int:
        """The offset of its end in the script."""
        return self.start + len(self.text)

    @property
    def indent(self) -> str:
        """The indentation of its first line."""
        first = self.text.lstrip("\r\n")
        return first[: len(first) - len(first.lstrip(" \t"))]


class Notebook:
    """One notebook.

    Args:
        raw: the bytes of the file.

    Raises:
        CellError: it is no notebook, or a cell is not Python 3.
    """

    def __init__(self, raw: bytes) -> None:
        self._text, content = _load(raw)
        self.cells = _cells(self._text, content) if _is_python(content) else []
        for cell in self.cells:
            try:
                Source(_BOM + (cell.lead + cell.text).encode("utf-8"))
            except SourceError as error:
                raise CellError(error.message, error.line, error.col, cell.number)
            except UnicodeEncodeError as error:
                line = 1 + len(_LINE_END.findall(cell.text[: error.start]))
                raise CellError("it holds half of a surrogate pair", line, 0, cell.number)
        text = "".join(cell.lead + cell.text + _GAP for cell in self.cells)
        self.script = _BOM + text.encode("utf-8")
        self._first_lines = [1 + len(_LINE_END.findall(text[: cell.start])) for cell in self.cells]

    def place(self, line: int) -> tuple[int, int]:
        """Return the number of the cell and the line in it for a line of the script."""
        index = max(bisect_right(self._first_lines, line) - 1, 0)
        return self.cells[index].number, line - self._first_lines[index] + 1

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """Return the notebook's bytes with edits of the script made.

        Raises:
            CellError: an edit reaches over more than one cell.
        """
        pieces: list[str] = []
        done = 0
        for cell in self.cells:
            strings = _Strings(self._text, cell.strings)
            for start, end, new in _local(cell, edits, cell is self.cells[-1]):
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
        self.text, content = _load(raw)
        self._cells = {cell.number: cell for cell in _cells(self.text, content)}

    def offset(self, number: int, line: int, col: int) -> int:
        """Return the offset in the file's text of a position in a code cell, line and column from 1.

        Raises:
            KeyError: there is no such cell, or it is empty.
        """
        cell = self._cells[number]
        starts = [0] + [m.end() for m in _LINE_END.finditer(cell.text)]
        start = starts[min(line, len(starts)) - 1] + col - 1
        return _Strings(self.text, cell.strings).replacement(start, start, "")[0]


def _load(raw: bytes) -> tuple[str, Any]:
    try:
        text = raw.decode("utf-8")
        content = json.loads(text[1:] if text.startswith("\ufeff") else text)
    except UnicodeDecodeError as error:
        raise CellError(
            f"no notebook: byte 0x{raw[error.start]:02x} is not UTF-8", 1 + raw.count(b"\n", 0, error.start)
        )
    except json.JSONDecodeError as error:
        raise CellError(f"no notebook: it is not JSON: {error.msg}", error.lineno, error.colno)
    if isinstance(content, dict) and "worksheets" in content:
        raise CellError(
            'a notebook of format {}; save it in format 4 first, with "jupyter nbconvert '
            '--to notebook --inplace"'.format(content.get("nbformat", 3))
        )
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise CellError("no notebook: it has no list of cells")
    return text, content


def _is_python(content: Any) -> bool:
    metadata = content.get("metadata")
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        language = part.get(name) if isinstance(part, dict) else None
        if isinstance(language, str) and language.lower() not in ("python", "ipython"):
            return False
    return True


def _cells(text: str, content: Any) -> list[Cell]:
    start = 1 if text.startswith("\ufeff") else 0
    cells_at = [span for key, span in _members(text, start) if key == "cells"][-1]
    found: list[Cell] = []
    offset = 0
    for index, (_, span) in enumerate(_members(text, cells_at[0])):
        cell = content["cells"][index]
        if not isinstance(cell, dict):
            raise CellError("no notebook: this cell is no object", cell=index + 1)
        if cell.get("cell_type") != "code":
            continue
        lines = cell.get("source")
        if isinstance(lines, str):
            lines = [lines]
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise CellError("no notebook: the source of this cell is no text", cell=index + 1)
        python = python_of("".join(lines))
        if python and not python.isspace():
            where = [s for key, s in _members(text, span[0]) if key == "source"][-1]
            strings = [s for _, s in _members(text, where[0])] if text[where[0]] == "[" else [where]
            lead = _lead(python)
            offset += len(lead)
            found.append(Cell(index + 1, offset, python, tuple(strings), lead))
            offset += len(python) + len(_GAP)
    return found


def _lead(cell: str) -> str:
    """Return the text that a cell needs before it to be Python. IPython removes the indentation of its first line
    from all lines; here the lines stand in a block."""
    if cell.lstrip("\r\n")[:1] not in (" ", "\t"):
        return ""
    for lead in ("", "if 1:\n"):
        try:
            Source(_BOM + (lead + cell).encode("utf-8", "replace"))
            return lead
        except SourceError:
            pass
    return ""


def _members(text: str, at: int) -> Iterator[tuple[str, _Span]]:
    """Yield the key (empty in an array) and the span of each value of the JSON object or array at an offset."""
    decode = json.JSONDecoder().raw_decode
    blank = _BLANK.match
    at = blank(text, at).end()  # type: ignore[union-attr]
    is_object = text[at] == "{"
    at = blank(text, at + 1).end()  # type: ignore[union-attr]
    while text[at] not in "]}":
        key = ""
        if is_object:
            key, at = decode(text, at)
            colon = blank(text, at).end()  # type: ignore[union-attr]
            at = blank(text, colon + 1).end()  # type: ignore[union-attr]
        _, end = decode(text, at)
        yield key, (at, end)
        at = blank(text, end).end()  # type: ignore[union-attr]
        if text[at] == ",":
            at = blank(text, at + 1).end()  # type: ignore[union-attr]


def _local(cell: Cell, edits: Sequence[Edit], is_last: bool) -> list[tuple[int, int, str]]:
    """Return the edits of a cell by their offsets in it; insertions at one offset are merged."""
    found: list[tuple[int, int, str]] = []
    size = len(cell.text)
    beyond = size + len(_GAP) + is_last  # an edit at the end of the script belongs to the last cell
    for edit in ordered(edits):
        start, end, new = edit.start - cell.start, edit.end - cell.start, edit.new
        if -len(cell.lead) <= start == end < 0:  # a line before the block around the cell
            start, end, new = 0, 0, cell.indent + new
        if not 0 <= start < beyond:
            continue
        if start > size:  # after the line end of the last line, where a new line goes
            start, end, new = size, size, "\n" + (new[:-1] if new.endswith("\n") else new)
        elif end > size + len(_GAP):
            raise CellError("a change here would reach into the next cell", cell=cell.number)
        end = min(end, size)
        if found and start == end == found[-1][1] and found[-1][0] == found[-1][1]:
            new = found.pop()[2] + new
        found.append((start, end, new))
    return found


class _Strings:
    """The JSON strings that hold the lines of a cell.

    Args:
        text: the notebook.
        spans: the place of each string, with its quotes.
    """

    def __init__(self, text: str, spans: Sequence[_Span]) -> None:
        self._text = text
        self._spans = spans
        self._units = [
            [start + 1 + m.start() for m in _UNIT.finditer(text[start + 1 : end - 1])] + [end - 1]
            for start, end in spans
        ]
        self._starts = [0]
        for units in self._units:
            self._starts.append(self._starts[-1] + len(units) - 1)
        self._break = self._line_break()

    def _line_break(self) -> str:
        """Return the text between the strings of two lines; empty if all lines are in one string."""
        first = self._spans[0][0]
        if len(self._spans) > 1:
            return '"' + self._text[self._spans[0][1] : self._spans[1][0]] + '"'
        before = len(self._text[:first].rstrip(" \t\r\n"))
        if self._text[before - 1] != "[":
            return ""
        return '",' + (self._text[before:first] or " ") + '"'

    def replacement(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """Return the span in the notebook and the new text for a replacement in the cell."""
        (string, first), (_, last) = self._at(start), self._at(end)
        units = self._units[string]
        lines = new.split("\n")
        written = [json.dumps(line, ensure_ascii=self._text.isascii())[1:-1] for line in lines]
        joint = "\\n" + self._break
        result = joint.join(written)
        if self._break and new.endswith("\n") and self._text[last] == '"':
            result = result[: -len(self._break)]  # the string ends here anyway
        if self._break and new and first == units[-1] and self._text[units[0] : first].endswith("\\n"):
            result = self._break + result
        return first, last, result

    def _at(self, offset: int) -> tuple[int, int]:
        """Return the number of the string and the offset in the notebook for an offset in the cell."""
        index = min(bisect_right(self._starts, offset) - 1, len(self._spans) - 1)
        return index, self._units[index][offset - self._starts[index]]
