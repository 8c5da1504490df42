"""The code cells of a notebook, with everything masked that is not Python."""

from __future__ import annotations

import json
from codecs import BOM_UTF8 as BOM  # before a script it makes Python ignore a coding cookie
from typing import Any, NamedTuple

from ..files.message import Message
from .ipython_magics import python_of
from .json_text import Span, spans_of_members
from .source import Source, SourceError

# Between two cells, so that an edit after the last line of one cell and an edit before the first line of the next one
# have different offsets.
GAP = "\n\n"


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
    strings: tuple[Span, ...]
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


def read_notebook_json(raw: bytes) -> tuple[str, dict[str, Any]]:
    try:
        text = raw.decode("utf-8")
        content = json.loads(text[1:] if text.startswith("\ufeff") else text)
    except UnicodeDecodeError as error:
        raise CellError(
            Message("no notebook: byte 0x{0} is not UTF-8", f"{raw[error.start]:02x}"),
            1 + raw.count(b"\n", 0, error.start),
        )
    except json.JSONDecodeError as error:
        raise CellError(Message("no notebook: it is not JSON: {0}", error.msg), error.lineno, error.colno)
    except RecursionError:
        raise CellError("no notebook: its brackets are nested too deeply")
    if isinstance(content, dict) and "worksheets" in content:
        raise CellError(
            Message(
                'a notebook of format {0}; save it in format 4 first, with "jupyter nbconvert --to notebook --inplace"',
                content.get("nbformat", 3),
            )
        )
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
        raise CellError("no notebook: it has no list of cells")
    return text, content


def is_python_notebook(content: dict[str, Any]) -> bool:
    metadata = content.get("metadata")
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        language = part.get(name) if isinstance(part, dict) else None
        if isinstance(language, str) and language.lower() not in ("python", "ipython"):
            return False
    return True


def read_cells(text: str, content: dict[str, Any]) -> list[Cell]:
    start = 1 if text.startswith("\ufeff") else 0
    cells_at = [span for key, span in spans_of_members(text, start) if key == "cells"][-1]
    cells: list[Cell] = []
    offset = 0
    for index, (_, span) in enumerate(spans_of_members(text, cells_at[0])):
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
            where = [s for key, s in spans_of_members(text, span[0]) if key == "source"][-1]
            strings = [s for _, s in spans_of_members(text, where[0])] if text[where[0]] == "[" else [where]
            lead = _prefix_to_parse(python)
            offset += len(lead)
            cells.append(Cell(index + 1, offset, python, tuple(strings), lead))
            offset += len(python) + len(GAP)
    return cells


def _prefix_to_parse(cell: str) -> str:
    """Return the text that a cell needs before it to be Python. IPython removes the indentation of its first line
    from all lines; here the lines stand in a block."""
    if cell.lstrip("\r\n")[:1] not in (" ", "\t"):
        return ""
    for lead in ("", "if 1:\n"):
        try:
            Source(BOM + (lead + cell).encode("utf-8", "replace"))
            return lead
        except SourceError:
            pass
    return ""
