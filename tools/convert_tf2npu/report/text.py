"""The words of a run: a line for each diagnostic, counts, a summary, a diff."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Iterator, Sequence, Tuple

from ..engine.results import CHANGE, ERROR, FINDING, Calls, Diagnostic, FileResult

if TYPE_CHECKING:
    from ..rules.registry import Registry

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
Named = Tuple[str, FileResult]  # a file's path and its result


def place(diagnostic: Diagnostic) -> str:
    """Return ``line:col``, or ``cell 2:line:col`` in a notebook, without the parts that are unknown."""
    parts = [f"cell {diagnostic.cell}"] if diagnostic.cell else []
    if diagnostic.line:
        parts += [str(n) for n in (diagnostic.line, diagnostic.col) if n]
    return ":".join(parts)


def message(diagnostic: Diagnostic) -> str:
    """Return the message, with a prefix unless the code was rewritten."""
    kind = {CHANGE: "", FINDING: "not converted: ", ERROR: "unreadable, not converted: "}[diagnostic.kind]
    return kind + diagnostic.message


def diagnostic_parts(path: str, diagnostic: Diagnostic) -> tuple[str, str]:
    """Return ``path:line:col:`` and the message."""
    where = place(diagnostic)
    return (path + ":" + where if where else path) + ":", message(diagnostic)


def diagnostic_line(path: str, diagnostic: Diagnostic) -> str:
    """Return ``path:line:col: CODE message``."""
    where, said = diagnostic_parts(path, diagnostic)
    return f"{where} {diagnostic.code} {said}"


def statistics(results: Sequence[Named], registry: Registry) -> Iterator[str]:
    """Return a line with the number of diagnostics for each rule, the most frequent first."""
    said = [d for _, result in results for d in result.diagnostics]
    rewrites = Counter(d.code for d in said if d.kind == CHANGE)
    for code, number in sorted(Counter(d.code for d in said).items(), key=lambda i: (-i[1], i[0])):
        rule = registry.by_code(code)
        title = rule.title.rstrip(".") if rule else "Unreadable files"
        kinds = f" ({rewrites[code]} rewritten, {number - rewrites[code]} not converted)" if rule else ""
        yield f"{number:6}  {code}  {title}{kinds}"


_ON_CPU = {
    "script": "No script opens the NPU for {}: TensorFlow 2 runs there on the CPU. "
    "Write npu.open().as_default() in the script that starts the program.",
    "module": "No script imports {}. Write npu.open().as_default() in the program that does: "
    "TensorFlow 2 runs on the CPU without it.",
}


def summary(results: Sequence[Named]) -> list[str]:
    """Return sentences about a run: its TensorFlow calls, its files, and those that the NPU does not run."""
    calls = Calls.sum(result.calls for _, result in results)
    said = [d for _, result in results for d in result.diagnostics]
    parts = [count(len(results), "Python file"), f"{sum(1 for _, r in results if r.new is not None)} changed"]
    unreadable = sum(1 for _, r in results if r.unreadable)
    if unreadable:
        parts.append(f"{unreadable} unreadable")
    rewrites, findings = (sum(1 for d in said if d.kind == kind) for kind in (CHANGE, FINDING))
    places = f"{count(findings, 'place')} {_needs(findings)} a manual change"
    lines = [
        calls_sentence(calls, sum(1 for _, r in results if r.calls.total)) + ".",
        f"{', '.join(parts)}; {count(rewrites, 'rewrite')}, {places}.",
    ]
    return lines + on_cpu(results)


def on_cpu(results: Sequence[Named]) -> list[str]:
    """Return sentences about the files of TensorFlow 2 that no script runs on the NPU: scripts, and modules of none."""
    lines = []
    for kind, sentence in _ON_CPU.items():
        found = [path for path, result in results if result.on_cpu == kind]
        if found:
            whole = printable(found[0]) + (f" and {count(len(found) - 1, 'other file')}" if len(found) > 1 else "")
            lines.append(sentence.format(whole))
    return lines


def calls_sentence(calls: Calls, files: int) -> str:
    """Return ``41 TensorFlow calls in 13 files: 33 fine, 6 rewritten, 2 need a manual change``."""
    total = f"{count(calls.total, 'TensorFlow call')} in {count(files, 'file')}"
    manual = f"{calls.left} {_needs(calls.left)} a manual change"
    return f"{total}: {calls.fine} fine, {calls.rewritten} rewritten, {manual}"


def _needs(number: int) -> str:
    return "needs" if number == 1 else "need"


def count(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Return a text with its control characters and line ends as escapes. A file name may contain them."""
    return _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def _quoted(name: bytes) -> bytes:
    """Return a name for a diff, quoted and escaped as git does it if it has special characters."""
    try:
        plain = name.decode("utf-8").isprintable() and not re.search(rb'["\\]', name)
    except UnicodeDecodeError:
        plain = False
    return name if plain else b'"%s"' % re.sub(rb"[^ !#-\[\]-~]", lambda found: b"\\%03o" % found.group()[0], name)


def diff(path: str, old: bytes, new: bytes) -> bytes:
    """Return a unified diff of a file as bytes, whatever its encoding is."""
    import difflib  # only here: few runs print a diff

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
