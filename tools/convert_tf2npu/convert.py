"""One file through all rules: bytes in, bytes and diagnostics out.

Nothing is read or written here, so that the same function serves the command, tests, and the running
of unmodified scripts.
"""
from __future__ import annotations

import ast
import re
from typing import List, NamedTuple, Optional, Tuple

from .config import Settings
from .imports import import_edits, taken
from .project import Project
from .registry import Change, Context, Finding, Registry, Result, Rule
from .source import Source, SourceError

CHANGE, FINDING, ERROR = 'change', 'finding', 'error'
_IGNORE = re.compile(r'#\s*npu:\s*ignore(?:\[([A-Za-z0-9,\s]*)\])?')


class Diagnostic(NamedTuple):
    """One thing said of a file.

    ``kind`` is ``change``, ``finding`` or ``error``; ``line`` and ``col`` count from 1, in
    characters, and are 0 where no place can be named.
    """
    line: int
    col: int
    code: str
    kind: str
    message: str


class FileResult(NamedTuple):
    """What became of one file: its new bytes, or None where it stays, and the diagnostics."""
    new: Optional[bytes]
    diagnostics: Tuple[Diagnostic, ...]

    @property
    def unreadable(self) -> bool:
        """Whether the file could not be read as Python."""
        return any(d.kind == ERROR for d in self.diagnostics)


class Converter:
    """All rules with their settings.

    Args:
        settings: which rules act.
        project: the files of the run.
    """

    def __init__(self, settings: Settings = Settings(), project: Optional[Project] = None) -> None:
        self.settings = settings
        self.project = project or Project()
        self.registry = Registry([r for r in Registry().rules if settings.enabled(r.code)])

    def convert(self, raw: bytes, path: str = '') -> FileResult:
        """Convert a file.

        Args:
            raw: its bytes.
            path: where it stands, for what it imports from other files of the project.

        Returns:
            what becomes of it; a file that cannot be read has one diagnostic of the kind ``error``.
        """
        try:
            return self._convert(raw, path)
        except SourceError as error:
            return _failed(error.message, error.line, error.col)
        except RecursionError:
            return _failed('its code is nested too deeply')
        except Exception as error:  # one file never ends the run of the others
            return _failed('the tool itself fails on it, please report that: %s: %s' % (
                type(error).__name__, error))

    def _convert(self, raw: bytes, path: str) -> FileResult:
        if not self.project.concerns(raw):
            Source(raw)  # only to tell whether it can be read
            return FileResult(None, ())
        _, source, names, types = self.project.understand(raw, path)
        context = Context(source, names, types)
        changes, diagnostics = self._collect(context)
        if not changes:
            return FileResult(None, _by_place(diagnostics))
        new = source.edited(import_edits(source, names, changes) +
                            [edit for change in changes for edit in change.edits])
        Source(new)  # what is written is Python, or nothing is written
        return FileResult(new, _by_place(diagnostics))

    def _collect(self, context: Context) -> Tuple[List[Change], List[Diagnostic]]:
        changes: List[Change] = []
        diagnostics: List[Diagnostic] = []
        spans: List[Tuple[int, int]] = []
        for rule, result in self.registry.check(context):
            if _ignored(context.source, result.node, rule.code):
                continue
            if isinstance(result, Change):
                result = _possible(context, result, spans)
            if isinstance(result, Change):
                changes.append(result)
                spans += [(e.start, e.end) for e in result.edits if e.end > e.start]
            diagnostics.append(_diagnostic(context.source, rule, result))
        return changes, diagnostics


def _possible(context: Context, change: Change, spans: List[Tuple[int, int]]) -> Result:
    """The change, or a finding where it cannot be made."""
    name = taken(change.uses, context.names)
    if name:
        return Finding(change.node, 'left as it is, because this file uses the name %s for something '
                       'else (%s)' % (name, change.message))
    for edit in change.edits:
        if any(edit.start < end and start < edit.end or start < edit.start < end
               for start, end in spans):
            return Finding(change.node, 'left as it is, because it stands inside code that another '
                           'rule replaces (%s)' % change.message)
    return change


def _diagnostic(source: Source, rule: Rule, result: Result) -> Diagnostic:
    line, col = source.line_col(source.start(result.node))
    kind = CHANGE if isinstance(result, Change) else FINDING
    return Diagnostic(line, col, rule.code, kind, result.message)


def _ignored(source: Source, node: ast.AST, code: str) -> bool:
    first, last = node.lineno, getattr(node, 'end_lineno', None)  # type: ignore[attr-defined]
    body = getattr(node, 'body', None)
    if isinstance(body, list) and body:
        last = body[0].lineno  # of a function only its head
    for number in range(first, (last or first) + 1):
        found = _IGNORE.search(source.line(number))
        if found:
            codes = [c.strip().upper() for c in (found.group(1) or '').split(',') if c.strip()]
            if not codes or code in codes:
                return True
    return False


def _by_place(diagnostics: List[Diagnostic]) -> Tuple[Diagnostic, ...]:
    return tuple(sorted(diagnostics))


def _failed(message: str, line: int = 0, col: int = 0) -> FileResult:
    return FileResult(None, (Diagnostic(line, col, 'NPU000', ERROR, message),))
