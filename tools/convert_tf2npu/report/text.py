"""The report for a terminal: one line for each thing said, and a summary."""
from __future__ import annotations

import difflib
import os
from typing import Iterator, List, Sequence, Tuple

from ..convert import CHANGE, ERROR, FINDING, Diagnostic, FileResult


def diagnostic_line(path: str, diagnostic: Diagnostic) -> str:
    """``path:line:col: CODE message``."""
    place = path
    if diagnostic.line:
        place += ':%d' % diagnostic.line + (':%d' % diagnostic.col if diagnostic.col else '')
    kind = {CHANGE: '', FINDING: 'left: ', ERROR: 'cannot be read, left unchanged: '}[diagnostic.kind]
    return '%s: %s %s%s' % (place, diagnostic.code, kind, diagnostic.message)


def lines(results: Sequence[Tuple[str, FileResult]], changes: bool) -> Iterator[str]:
    """All diagnostics of a run.

    Args:
        results: paths and what became of them.
        changes: also list what was rewritten, not only what was left or could not be read.
    """
    for path, result in results:
        for diagnostic in result.diagnostics:
            if changes or diagnostic.kind != CHANGE:
                yield diagnostic_line(path, diagnostic)


def summary(results: Sequence[Tuple[str, FileResult]]) -> str:
    """One sentence with the counts of a run."""
    said = [d for _, result in results for d in result.diagnostics]
    parts = ['%s read' % count(len(results), 'Python file'),
             '%d changed' % sum(1 for _, r in results if r.new is not None)]
    unreadable = sum(1 for _, r in results if r.unreadable)
    if unreadable:
        parts.append('%d not readable and left as %s' % (
            unreadable, 'it is' if unreadable == 1 else 'they are'))
    findings = sum(1 for d in said if d.kind == FINDING)
    return '%s; %s, %s.' % (', '.join(parts), count(
        sum(1 for d in said if d.kind == CHANGE), 'rewrite'),
        count(findings, 'place') + ' left to you')


def count(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return '%d %s%s' % (number, noun, '' if number == 1 else 's')


def diff(path: str, old: bytes, new: bytes) -> bytes:
    """A unified diff of a file, as bytes, for its encoding is its own business."""
    name = os.fsencode(path.replace(os.sep, '/'))
    pieces: List[bytes] = []
    for line in difflib.diff_bytes(difflib.unified_diff, old.splitlines(keepends=True),
                                   new.splitlines(keepends=True), b'a/' + name, b'b/' + name):
        pieces.append(line)
        if not line.endswith(b'\n'):
            pieces.append(b'\n' if line.endswith(b'\r') else b'\n\\ No newline at end of file\n')
    return b''.join(pieces)
