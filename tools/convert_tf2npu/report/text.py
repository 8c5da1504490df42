"""The words of a run: a line for each diagnostic, counts, a summary, a diff."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Iterator, Sequence, Tuple

from ..engine.results import CHANGE, ERROR, FINDING, UNREACHED, Calls, Diagnostic, FileResult
from ..files.texts import is_server_file
from .language import ENGLISH, Language

if TYPE_CHECKING:
    from ..rules.registry import Registry

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_PREFIXES = {
    CHANGE: "",
    FINDING: "not converted: ",
    UNREACHED: "not converted, and no observed run reached it: ",
    ERROR: "unreadable, not converted: ",
}
Named = Tuple[str, FileResult]  # a file's path and its result


def place_text(diagnostic: Diagnostic, translate: Language = ENGLISH) -> str:
    """Return ``line:col``, or ``cell 2:line:col`` in a notebook, without the parts that are unknown."""
    parts = [translate("cell {0}").format(diagnostic.cell)] if diagnostic.cell else []
    if diagnostic.line:
        parts += [str(n) for n in (diagnostic.line, diagnostic.col) if n]
    return ":".join(parts)


def message_text(diagnostic: Diagnostic, translate: Language = ENGLISH) -> str:
    """Return the message, with a prefix unless the code was rewritten."""
    return translate(_PREFIXES[diagnostic.kind]) + translate(diagnostic.message)


def diagnostic_parts(path: str, diagnostic: Diagnostic, translate: Language = ENGLISH) -> tuple[str, str]:
    """Return ``path:line:col:`` and the message."""
    where = place_text(diagnostic, translate)
    return (path + ":" + where if where else path) + ":", message_text(diagnostic, translate)


def diagnostic_line(path: str, diagnostic: Diagnostic, translate: Language = ENGLISH) -> str:
    """Return ``path:line:col: CODE message``."""
    where, said = diagnostic_parts(path, diagnostic, translate)
    return f"{where} {diagnostic.code} {said}"


def statistics_lines(results: Sequence[Named], registry: Registry, translate: Language = ENGLISH) -> Iterator[str]:
    """Return a line with the number of diagnostics for each rule, the most frequent first."""
    said = [d for _, result in results for d in result.diagnostics]
    rewrites = Counter(d.code for d in said if d.kind == CHANGE)
    for code, number in sorted(Counter(d.code for d in said).items(), key=lambda i: (-i[1], i[0])):
        rule = registry.by_code(code)
        title = title_without_stop(rule.title, translate) if rule else translate("Unreadable files")
        kinds = (
            translate(" ({0} rewritten, {1} not converted)").format(rewrites[code], number - rewrites[code])
            if rule
            else ""
        )
        yield f"{number:6}  {code}  {title}{kinds}"


def title_without_stop(title: str, translate: Language = ENGLISH) -> str:
    """Return the title of a rule without its full stop."""
    return translate(title.rstrip("."))


_ON_CPU = {
    "script": "No script opens the NPU for {0}: TensorFlow 2 runs there on the CPU. "
    "Write npu.open().as_default() in the script that starts the program.",
    "module": "No script imports {0}. Write npu.open().as_default() in the program that does: "
    "TensorFlow 2 runs on the CPU without it.",
}


def summary_sentences(results: Sequence[Named], translate: Language = ENGLISH) -> list[str]:
    """Return sentences about a run: its TensorFlow calls, its files, and those that the NPU does not run."""
    calls = Calls.sum(result.calls for _, result in results)
    said = [d for _, result in results for d in result.diagnostics]
    unreadable = sum(1 for _, r in results if r.unreadable)
    rewrites, findings, others = (sum(1 for d in said if d.kind == kind) for kind in (CHANGE, FINDING, UNREACHED))
    need = (
        "{0}, {1} changed{2}; {3}, {4} needs a manual change."
        if findings == 1
        else "{0}, {1} changed{2}; {3}, {4} need a manual change."
    )
    lines = [
        calls_sentence(calls, sum(1 for _, r in results if r.calls.total), translate) + translate("."),
        translate(need).format(
            count_text(sum(not is_server_file(path) for path, _ in results), "Python file", translate),
            sum(1 for _, r in results if r.new is not None),
            translate(", {0} unreadable").format(unreadable) if unreadable else "",
            count_text(rewrites, "rewrite", translate),
            count_text(findings, "place", translate),
        ),
    ]
    if others:
        places = count_text(others, "other place", translate)
        lines.append(translate("No observed run reached {0} that may need a change.").format(places))
    return lines + cpu_sentences(results, translate)


def cpu_sentences(results: Sequence[Named], translate: Language = ENGLISH) -> list[str]:
    """Return sentences about the files of TensorFlow 2 that no script runs on the NPU: scripts, and modules of none."""
    lines = []
    for kind, sentence in _ON_CPU.items():
        paths = [path for path, result in results if result.on_cpu == kind]
        if paths:
            others = (
                translate(" and {0}").format(count_text(len(paths) - 1, "other file", translate))
                if len(paths) > 1
                else ""
            )
            lines.append(translate(sentence).format(printable_text(paths[0]) + others))
    return lines


def calls_sentence(calls: Calls, files: int, translate: Language = ENGLISH) -> str:
    """Return ``41 TensorFlow calls in 13 files: 33 fine, 6 rewritten, 2 need a manual change``."""
    need = (
        "{0} in {1}: {2} fine, {3} rewritten, {4} needs a manual change"
        if calls.left == 1
        else "{0} in {1}: {2} fine, {3} rewritten, {4} need a manual change"
    )
    return translate(need).format(
        count_text(calls.total, "TensorFlow call", translate),
        count_text(files, "file", translate),
        calls.fine,
        calls.rewritten,
        calls.left,
    )


def count_text(number: int, noun: str, translate: Language = ENGLISH) -> str:
    """Return ``1 file``, ``2 files``. Only English has a plural."""
    return f"{number} {translate(noun)}{'' if number == 1 or translate is not ENGLISH else 's'}"


def printable_text(text: str) -> str:
    """Return a text with its control characters and line ends as escapes. A file name may contain them."""
    return _CONTROLS.sub(lambda match: match.group().encode("unicode_escape").decode("ascii"), text)


def _quoted_as_git(name: bytes) -> bytes:
    """Return a name for a diff, quoted and escaped as git does it if it has special characters."""
    try:
        plain = name.decode("utf-8").isprintable() and not re.search(rb'["\\]', name)
    except UnicodeDecodeError:
        plain = False
    return name if plain else b'"%s"' % re.sub(rb"[^ !#-\[\]-~]", lambda match: b"\\%03o" % match.group()[0], name)


def unified_diff(path: str, old: bytes, new: bytes) -> bytes:
    """Return a unified diff of a file as bytes, whatever its encoding is."""
    import difflib  # only here: few runs print a diff

    name = os.fsencode(path.replace(os.sep, "/"))
    pieces: list[bytes] = []
    for line in difflib.diff_bytes(
        difflib.unified_diff,
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        _quoted_as_git(b"a/" + name),
        _quoted_as_git(b"b/" + name),
    ):
        pieces.append(line)
        if not line.endswith(b"\n"):
            pieces.append(b"\n" if line.endswith(b"\r") else b"\n\\ No newline at end of file\n")
    return b"".join(pieces)
