"""What is said, in words: a line for each thing, counts, a summary, a diff."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Iterator, Sequence, Tuple

from ..engine.results import CHANGE, ERROR, FINDING, Calls, Diagnostic, FileResult

if TYPE_CHECKING:
    from ..rules.registry import Registry

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
Named = Tuple[str, FileResult]  # a file's path and what became of it


def place(diagnostic: Diagnostic) -> str:
    """``cell 2:line:col``, as far as each is known; the cell of a notebook only."""
    parts = ["cell %d" % diagnostic.cell] if diagnostic.cell else []
    if diagnostic.line:
        parts += [str(n) for n in (diagnostic.line, diagnostic.col) if n]
    return ":".join(parts)


def message(diagnostic: Diagnostic) -> str:
    """What is said, with what became of the place where that is not a rewrite."""
    kind = {CHANGE: "", FINDING: "left: ", ERROR: "cannot be read, left unchanged: "}[diagnostic.kind]
    return kind + diagnostic.message


def diagnostic_parts(path: str, diagnostic: Diagnostic) -> tuple[str, str]:
    """``path:line:col:``, and what is said there."""
    where = place(diagnostic)
    return (path + ":" + where if where else path) + ":", message(diagnostic)


def diagnostic_line(path: str, diagnostic: Diagnostic) -> str:
    """``path:line:col: CODE message``."""
    where, said = diagnostic_parts(path, diagnostic)
    return f"{where} {diagnostic.code} {said}"


def statistics(results: Sequence[Named], registry: Registry) -> Iterator[str]:
    """How often each rule had something to say, the most frequent first."""
    said = [d for _, result in results for d in result.diagnostics]
    rewrites = Counter(d.code for d in said if d.kind == CHANGE)
    for code, number in sorted(Counter(d.code for d in said).items(), key=lambda i: (-i[1], i[0])):
        rule = registry.by_code(code)
        yield "%6d  %s  %s" % (
            number,
            code,
            "%s (%d rewritten, %d left)" % (rule.title.rstrip("."), rewrites[code], number - rewrites[code])
            if rule
            else "Files that cannot be read",
        )


def summary(results: Sequence[Named]) -> list[str]:
    """Two sentences with the counts of a run: its calls of TensorFlow, and its files."""
    calls = Calls.sum(result.calls for _, result in results)
    said = [d for _, result in results for d in result.diagnostics]
    parts = [count(len(results), "Python file"), "%d changed" % sum(1 for _, r in results if r.new is not None)]
    unreadable = sum(1 for _, r in results if r.unreadable)
    if unreadable:
        parts.append("%d not readable and left as %s" % (unreadable, "it is" if unreadable == 1 else "they are"))
    return [
        calls_sentence(calls, sum(1 for _, r in results if r.calls.total)) + ".",
        "{}; {}, {}.".format(
            ", ".join(parts),
            count(sum(1 for d in said if d.kind == CHANGE), "rewrite"),
            count(sum(1 for d in said if d.kind == FINDING), "place") + " left to you",
        ),
    ]


def calls_sentence(calls: Calls, files: int) -> str:
    """``41 TensorFlow calls in 13 files: 33 fine, 6 rewritten, 2 need you``."""
    return "%s in %s: %d fine, %d rewritten, %s you" % (
        count(calls.total, "TensorFlow call"),
        count(files, "file"),
        calls.fine,
        calls.rewritten,
        "1 needs" if calls.left == 1 else "%d need" % calls.left,
    )


def count(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")


def printable(text: str) -> str:
    """Text with its control characters, line ends too, written as escapes: a file's name may hold them."""
    return _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def _quoted(name: bytes) -> bytes:
    """A name in a diff, in quotes and escaped where it could be taken for something else, as git and patch have it."""
    try:
        plain = name.decode("utf-8").isprintable() and not re.search(rb'["\\]', name)
    except UnicodeDecodeError:
        plain = False
    return name if plain else b'"%s"' % re.sub(rb"[^ !#-\[\]-~]", lambda found: b"\\%03o" % found.group()[0], name)


def diff(path: str, old: bytes, new: bytes) -> bytes:
    """A unified diff of a file, as bytes, for its encoding is its own business."""
    import difflib  # only for who wants no files written

    name = os.fsencode(path.replace(os.sep, "/"))
    pieces: list[bytes] = []
    for line in difflib.diff_bytes(
        difflib.unified_diff,
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        _quoted(b"a/" + name),
        _quoted(b"b/" + name),
    ):
        pieces.append(line)
        if not line.endswith(b"\n"):
            pieces.append(b"\n" if line.endswith(b"\r") else b"\n\\ No newline at end of file\n")
    return b"".join(pieces)
