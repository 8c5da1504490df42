"""The line of code of a diagnostic, with a mark below its place, for a terminal."""

from __future__ import annotations

from typing import Sequence

from ..engine.results import CHANGE, Diagnostic
from .file_text import FileText, name_at
from .text import Named, printable_text
from .translation import display_width

_CUT = "..."
_LEAST = 20  # columns of code, however narrow the terminal is


class SourceLines:
    """The lines of code of findings and errors, read before the files change.

    Args:
        results: paths and their results.
        texts: the bytes of those that are no files, by path.
    """

    def __init__(self, results: Sequence[Named], texts: dict[str, bytes] | None = None) -> None:
        self._lines: dict[tuple[str, int, int], str] = {}
        for path, result in results:
            shown = [d for d in result.diagnostics if d.kind != CHANGE and d.line]
            if shown:
                text = FileText(path, (texts or {}).get(path))
                self._lines.update(((path, d.cell, d.line), text.line(d.line, d.cell)) for d in shown)

    def line_and_marker(self, path: str, diagnostic: Diagnostic, columns: int | None) -> tuple[str, str] | None:
        """Return the line with its number, and the mark below it; None if there is no such line.

        Args:
            path: of the file.
            diagnostic: with the place.
            columns: of the terminal; None not to cut long lines.
        """
        line = self._lines.get((path, diagnostic.cell, diagnostic.line), "")
        if not line.strip():
            return None
        number = f"{diagnostic.line:>5} | "
        room = None if columns is None else max(columns - len(number) - 1, _LEAST)
        code, start, marked = _fit_to_columns(*_split_at_name(line, diagnostic.col), room)
        return number + code, " " * 5 + " | " + " " * start + "^" * max(1, marked)


def _split_at_name(line: str, col: int) -> tuple[str, str, str]:
    """Return the printable text before the marked name, the name and the rest, without indentation."""
    indentation = len(line) - len(line.lstrip())
    start, end = name_at(line, col) if col else (indentation, len(line.rstrip()))
    start, end = max(start, indentation), max(end, indentation)
    before, after = len(line[:start].expandtabs()), len(line[:end].expandtabs())
    text = line.expandtabs()
    cut = len(line[:indentation].expandtabs())
    return printable_text(text[cut:before]), printable_text(text[before:after]), printable_text(text[after:].rstrip())


def _fit_to_columns(before: str, marked: str, after: str, columns: int | None) -> tuple[str, int, int]:
    """Return the code in a number of columns, and where in it the mark starts and how long it is, in columns."""
    if columns is not None:
        marked = _text_that_fits(marked, columns - 2 * len(_CUT))  # it keeps its place between two cuts
        space = columns - display_width(marked)
        if display_width(before) > space - len(_CUT):
            kept = max(space - 2 * len(_CUT), 0)
            before = _CUT + _text_that_fits(before[::-1], kept)[::-1]
        space -= display_width(before)
        if display_width(after) > space:
            after = _text_that_fits(after, max(space - len(_CUT), 0)) + _CUT
    return before + marked + after, display_width(before), display_width(marked)


def _text_that_fits(text: str, columns: int) -> str:
    """Return the beginning of a text that fits into a number of columns."""
    taken = 0
    for place, letter in enumerate(text):
        taken += display_width(letter)
        if taken > columns:
            return text[:place]
    return text
