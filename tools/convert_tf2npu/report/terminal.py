"""Output on a terminal, with colours, or into a pipe, without."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Sequence, TextIO

from ..engine.results import CHANGE, ERROR, FINDING, UNREACHED, Diagnostic
from . import text
from .language import ENGLISH, Language

if TYPE_CHECKING:
    from .code_frame import SourceLines

_COLOURS: dict[str, str] = {CHANGE: "32", FINDING: "33", UNREACHED: "2", ERROR: "31", "place": "1"}
_DIFF_COLOURS = ((b"+++", b"1"), (b"---", b"1"), (b"@@", b"36"), (b"+", b"32"), (b"-", b"31"))


class Terminal:
    """A stream of text.

    It has colours on a terminal that supports them. FORCE_COLOR asks for them anywhere, NO_COLOR forbids them.

    Args:
        stream: usually standard output or standard error.
        translate: the language.
    """

    def __init__(self, stream: TextIO, translate: Language = ENGLISH) -> None:
        self._stream = stream
        self._language = translate
        self.is_terminal = stream.isatty()
        self._coloured = not os.environ.get("NO_COLOR") and (
            bool(os.environ.get("FORCE_COLOR")) or self.is_terminal and os.environ.get("TERM", "dumb") != "dumb"
        )

    def print_line(self, line: str) -> None:
        """Print a line. Characters that the stream's encoding lacks are printed as escapes."""
        self._print_escaped(text.printable_text(line))

    def print_results(
        self, results: Sequence[text.Named], with_changes: bool, source_lines: SourceLines | None = None
    ) -> None:
        """Print the diagnostics of files.

        Args:
            results: paths and their results. Findings that no observed run reached are printed last.
            with_changes: also print rewrites, and each finding at its place. Otherwise print findings and errors, and
                those with the same message in a file as one.
            source_lines: the lines of code, to print each below its finding or error.
        """
        reached = [(path, [d for d in result.diagnostics if d.kind != UNREACHED]) for path, result in results]
        others = [(path, [d for d in result.diagnostics if d.kind == UNREACHED]) for path, result in results]
        for path, diagnostics in reached + others:
            if with_changes:
                for diagnostic in diagnostics:
                    self._print_diagnostic(path, diagnostic, 0, source_lines)
                continue
            same = Counter((d.code, d.message) for d in diagnostics if d.kind != CHANGE)
            for diagnostic in diagnostics:
                if diagnostic.kind != CHANGE:
                    self._print_diagnostic(
                        path, diagnostic, same.pop((diagnostic.code, diagnostic.message), 0) - 1, source_lines
                    )

    def _print_diagnostic(
        self, path: str, diagnostic: Diagnostic, others: int, source_lines: SourceLines | None
    ) -> None:
        """Print a diagnostic and the number of others with the same message, which is negative if it was printed."""
        if others < 0:
            return
        where, message = text.diagnostic_parts(path, diagnostic, self._language)
        self._print_escaped(
            "{} {} {}{}".format(
                self._paint("place", text.printable_text(where)),
                self._paint(diagnostic.kind, diagnostic.code),
                text.printable_text(message),
                self._language(" (and in {0}, which -v lists)").format(
                    text.count_text(others, "other place", self._language)
                )
                if others
                else "",
            )
        )

        frame = (
            source_lines.line_and_marker(path, diagnostic, self._columns())
            if source_lines and diagnostic.kind != CHANGE
            else None
        )
        if frame:
            self._print_escaped(frame[0])
            self._print_escaped(self._paint(diagnostic.kind, frame[1]))

    def _columns(self) -> int | None:
        """Return the columns of the terminal, None if the stream is none."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except OSError:
            return None

    def print_diff(self, diff: bytes) -> None:
        """Print a unified diff. Only colours are added to its bytes."""
        self._stream.flush()
        self._stream.buffer.write(
            b"".join(map(_colour_diff_line, diff.splitlines(keepends=True))) if self._coloured else diff
        )
        self._stream.buffer.flush()

    def _paint(self, kind: str, words: str) -> str:
        return f"\x1b[{_COLOURS[kind]}m{words}\x1b[0m" if self._coloured else words

    def _print_escaped(self, line: str) -> None:
        encoding = self._stream.encoding or "utf-8"
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=self._stream)


def _colour_diff_line(line: bytes) -> bytes:
    for start, colour in _DIFF_COLOURS:
        if line.startswith(start):
            words = line.rstrip(b"\r\n")
            return b"\x1b[" + colour + b"m" + words + b"\x1b[0m" + line[len(words) :]
    return line
