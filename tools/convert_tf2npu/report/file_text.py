"""The text of a file for the reports, and the names in its lines."""

from __future__ import annotations

import io
import json
import re
import tokenize

from ..files.extensions import NOTEBOOK
from ..project.source_files import MOST_BYTES

_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class FileText:
    """The bytes of a file and its lines, those of a notebook by cell.

    Args:
        path: its path; a notebook ends with ``.ipynb``.
        raw: its bytes; None to read them.
    """

    def __init__(self, path: str, raw: bytes | None = None) -> None:
        self.raw = _read_or_empty(path) if raw is None else raw
        self._code_cell_lines: dict[int, list[str]] = _code_cell_lines(self.raw) if path.endswith(NOTEBOOK) else {}
        # An invalid notebook has lines too: the error in it has a line of the file.
        self._lines = _LINE_END.split(_decoded(self.raw)) if not self._code_cell_lines else []

    @property
    def lines(self) -> list[str]:
        """The lines; of a notebook those of its code cells, each cell after a line with its number."""
        lines = list(self._lines)
        for number, cell in self._code_cell_lines.items():
            lines += [f"# cell {number}"] + cell
        return lines

    def line(self, number: int, cell: int = 0) -> str:
        """Return a line by its number from 1, without its end; the empty string if there is none."""
        lines = self._code_cell_lines.get(cell, []) if cell else self._lines
        return lines[number - 1] if 0 < number <= len(lines) else ""


def name_at(line: str, col: int) -> tuple[int, int]:
    """Return the start and end, from 0, of the dotted name at a column of a line; of one character if there is none."""
    match = _NAME.match(line, col - 1)
    return col - 1, match.end() if match else col


def _read_or_empty(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            # a script that is too large to convert is too large to show
            return stream.read(-1 if path.endswith(NOTEBOOK) else MOST_BYTES)
    except OSError:  # reported in its result
        return b""


def _decoded(raw: bytes) -> str:
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
    except SyntaxError:
        encoding = "utf-8"
    return raw.decode(encoding, "replace")


def _code_cell_lines(raw: bytes) -> dict[int, list[str]]:
    """Return the lines of a notebook's code cells, by their number among all cells."""
    try:
        cells = json.loads(raw.decode("utf-8-sig"))["cells"]
        return {
            number: _LINE_END.split("".join(cell["source"]))
            for number, cell in enumerate(cells, 1)
            if cell.get("cell_type") == "code"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # no notebook
