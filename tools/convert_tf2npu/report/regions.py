"""SARIF regions of diagnostics: columns count UTF-16 units, lines of a notebook are those of its file."""

from __future__ import annotations

from ..engine.results import Diagnostic
from ..syntax.notebook import CellPlaces
from ..syntax.source import SourceError
from .content import ReportFile
from .file_text import name_at


class Regions:
    """The regions of one file.

    Args:
        file: the file.
    """

    def __init__(self, file: ReportFile) -> None:
        self._file = file
        self._cells: CellPlaces | None = None
        if any(d.cell for d in file.result.diagnostics):
            try:
                self._cells = CellPlaces(file.text().raw)
            except SourceError:
                pass  # no notebook any more: its diagnostics get the first line

    def region_of(self, diagnostic: Diagnostic) -> dict[str, object]:
        """Return the SARIF region of a diagnostic: a dotted name, a character, or a line."""
        if not diagnostic.line:
            return {"startLine": 1}
        line, text = diagnostic.line, self._file.line(diagnostic)
        start, end = span = name_at(text, diagnostic.col or 1)
        if diagnostic.cell:
            line, text, start, end = self._line_and_columns_in_notebook(diagnostic, span)
        if not diagnostic.col or not text:
            return {"startLine": line}
        return {
            "startLine": line,
            "startColumn": _utf16_length(text[:start]) + 1,
            "endColumn": _utf16_length(text[:end]) + 1,
            "snippet": {"text": text[start:end]},
        }

    def _line_and_columns_in_notebook(self, diagnostic: Diagnostic, span: tuple[int, int]) -> tuple[int, str, int, int]:
        """Return the line of the file, its text, and the start and end in it of a span of a cell's line."""
        try:
            if self._cells is None:
                return 1, "", 0, 0
            start, end = (self._cells.offset(diagnostic.cell, diagnostic.line, col + 1) for col in span)
        except KeyError:
            return 1, "", 0, 0
        whole = self._cells.text
        first = whole.rfind("\n", 0, start) + 1
        return 1 + whole.count("\n", 0, start), whole[first:end], start - first, end - first


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
