"""The content of all reports: a run, with the names and counts that they show."""

from __future__ import annotations

import os
import urllib.parse
from typing import NamedTuple

from ..engine.results import CHANGE, ERROR, FINDING, NOT_READ, UNREACHED, Calls, Diagnostic, FileResult
from ..engine.run import Run
from ..rules.base import Rule
from ..rules.registry import Registry
from ..syntax.expressions import last_part
from .api_table import ApiUse, api_table
from .file_text import FileText
from .language import ENGLISH, Language
from .support import TF1, TF2
from .text import printable_text

NOT_READ_DOC = """Unreadable files.

The tool copies a file unchanged if it is not Python 3, or not a valid notebook, and reports the place and the reason.
Convert Python 2 with 2to3 first."""


class Explanation(NamedTuple):
    """A rule as the reports show it: its code, name, title and help, and the number of its diagnostics by kind."""

    code: str
    name: str
    title: str
    doc: str
    rewrites: int
    findings: int
    errors: int


class ReportFile:
    """A file as the reports show it.

    Attributes:
        name: its path below the source with slashes, as printable text.
        uri: the same percent-encoded.
        path: its path on disk.
        result: the result of its conversion.
    """

    def __init__(self, relative: str, path: str, result: FileResult) -> None:
        self.name = printable_path(relative)
        self.uri = _quoted_path(relative)
        self.path = path
        self.result = result
        self._lines: dict[tuple[int, int], str] | None = None

    def text(self) -> FileText:
        """Return its text before the migration, read each time: all texts may not fit into memory."""
        return FileText(self.path)

    def line(self, diagnostic: Diagnostic) -> str:
        """Return the line of a diagnostic without its end; the empty string if there is none."""
        if self._lines is None:
            text = self.text()
            self._lines = {(d.cell, d.line): text.line(d.line, d.cell) for d in self.result.diagnostics}
        return self._lines[diagnostic.cell, diagnostic.line]

    def new_text(self) -> FileText | None:
        """Return its text after the migration; None if it is unchanged."""
        return None if self.result.new is None else FileText(self.path, self.result.new)


class Report(NamedTuple):
    """A run as the reports show it. ``apis`` has the NPU support of TensorFlow version ``tensorflow``."""

    source: str
    root_uri: str
    files: tuple[ReportFile, ...]
    rules: tuple[Explanation, ...]
    apis: tuple[ApiUse, ...]
    tensorflow: str
    left_out: tuple[str, ...]
    excluded: tuple[str, ...]
    exit_code: int = 0
    translate: Language = ENGLISH

    @property
    def calls(self) -> Calls:
        """The TensorFlow calls of all files."""
        return Calls.sum(file.result.calls for file in self.files)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The diagnostics of all files."""
        return [d for file in self.files for d in file.result.diagnostics]

    def count(self, kind: str) -> int:
        """Return the number of diagnostics of a kind."""
        return sum(1 for d in self.diagnostics if d.kind == kind)


def report_of(run: Run, compat_v1: bool, exit_code: int = 0, translate: Language = ENGLISH) -> Report:
    """Return the content of the reports of a run.

    Args:
        run: the run, with its TensorFlow calls listed.
        compat_v1: True if its scripts are to run on TensorFlow 2.
        exit_code: the exit code of the command.
        translate: the language of the reports for people, which are the text and the HTML.
    """
    tensorflow = TF2 if compat_v1 or {result.version for _, result in run.results} - {""} == {"2"} else TF1
    source = os.path.realpath(run.source)
    root = source if os.path.isdir(run.source) else os.path.dirname(source)
    return Report(
        printable_path(run.source),
        "file://" + _quoted_path(root).rstrip("/") + "/",
        tuple(ReportFile(entry.relative, entry.path, result) for entry, result in run.results),
        _explanations(run),
        api_table([result for _, result in run.results], tensorflow),
        tensorflow,
        tuple(printable_path(path) for path in run.tree.left_out),
        tuple(printable_path(p) for p in run.excluded),
        exit_code,
        translate,
    )


def printable_path(path: str) -> str:
    """Return a path as text with slashes. Invalid UTF-8 and control characters are written as ``\\xff``."""
    return printable_text(os.fsencode(path.replace(os.sep, "/")).decode("utf-8", "backslashreplace"))


def _quoted_path(path: str) -> str:
    return urllib.parse.quote(os.fsencode(path.replace(os.sep, "/")))


def _explanations(run: Run) -> tuple[Explanation, ...]:
    counts: dict[str, list[int]] = {}
    for _, result in run.results:
        for diagnostic in result.diagnostics:
            count = counts.setdefault(diagnostic.code, [0, 0, 0])
            count[0] += diagnostic.kind == CHANGE
            count[1] += diagnostic.kind in (FINDING, UNREACHED)
            count[2] += diagnostic.kind == ERROR
    registry = Registry()
    return tuple(_explanation(code, registry.by_code(code), *counts[code]) for code in sorted(counts))


def _explanation(code: str, rule: Rule | None, rewrites: int, findings: int, errors: int) -> Explanation:
    doc = rule.doc if rule else NOT_READ_DOC
    assert rule or code == NOT_READ
    module = last_part(rule.module.__name__) if rule else "not_read"
    name = "".join(word.capitalize() for word in module.split("_"))
    return Explanation(code, name, doc.split("\n")[0].rstrip("."), doc, rewrites, findings, errors)
