"""Small pieces of the HTML report: text that may stand there, links, badges, lines of source."""

from __future__ import annotations

import html
import re
from typing import Iterable, Iterator

from ...engine.results import CHANGE, ERROR, FINDING, UNREACHED, Diagnostic
from ..content import ReportFile
from ..file_text import name_at
from ..language import Language
from ..text import place_text
from .frame import escape_html

LABEL = {CHANGE: "rewritten", FINDING: "manual change", UNREACHED: "not reached", ERROR: "unreadable"}
LABELS = {**LABEL, FINDING: "manual changes"}
LONGEST = 500  # characters of a line that are shown
_HEAD = re.compile(r"(?<![\w.'])(?:from [\w.]+ import [\w.]+|[A-Za-z_]\w*(?:\.\w+)*|'[\w/:.-]+'(?!\w))")
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|[\w.+-]+")
_CLOSING = {"(": ")", "[": "]"}


def section_start_html(name: str, title: str, number: int) -> str:
    """Return the start of a section of the page."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title" tabindex="-1">{title} '
        f'<span class="number">{number}</span></h2>'
    )


def badges_html(counts: Iterable[tuple[str, int]], translate: Language) -> str:
    """Return the counts of diagnostics, by kind."""
    return "".join(
        f'<span class="badge {kind}">{number} {translate(LABELS[kind] if number > 1 else LABEL[kind])}</span>'
        for kind, number in counts
        if number
    )


def file_id(file: ReportFile) -> str:
    """Return the anchor of a file, the same in every report on the project."""
    return "file-" + html.escape(file.uri)


def filter_attributes(file: ReportFile, diagnostic: Diagnostic) -> str:
    """Return the attributes by which the page's script filters a line."""
    kind, path = diagnostic.kind, escape_html(file.name)
    return f'class="{kind}" data-kind="{kind}" data-rule="{diagnostic.code}" data-path="{path}"'


def place_of_diagnostic(file: ReportFile, diagnostic: Diagnostic, translate: Language) -> str:
    """Return a file and a place in it as text."""
    position = place_text(diagnostic, translate)
    return escape_html(file.name + (":" + position if position else ""))


def source_line_html(file: ReportFile, diagnostic: Diagnostic) -> str:
    """Return the source line of a diagnostic, with the name at its place marked."""
    line = file.line(diagnostic)
    if not line.strip():
        return ""
    start, end = name_at(line, diagnostic.col or 1)
    blank = len(line) - len(line.lstrip())
    from_, to = max(blank, start - LONGEST // 2), start + LONGEST // 2
    pieces = line[from_:start], line[start:end], line[end:to]
    return '<code class="line">{}{}<mark>{}</mark>{}{}</code>'.format(
        "\u2026 " if from_ > blank else "",
        escape_html(pieces[0]),
        escape_html(pieces[1]),
        escape_html(pieces[2].rstrip()),
        " \u2026" if to < len(line) else "",
    )


def message_html(text: str, translate: Language) -> str:
    """Return a message, with the code in it as buttons that copy it."""
    text = translate(text)
    pieces, done = [], 0
    for start, end in code_spans(text):
        pieces += [
            escape_html(text[done:start]),
            f'<button type="button" class="piece" title="{translate("Copy")}">{escape_html(text[start:end])}</button>',
        ]
        done = end
    return "".join(pieces) + escape_html(text[done:])


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Return the spans of code in a message: calls, dotted names, ``name=value``, names with an underscore."""
    at = 0
    while True:
        head = _HEAD.search(text, at)
        if not head:
            return
        at = _code_end(text, head.end())
        piece = text[head.start() : at]
        if re.search(r"[(=_']|\w\w\.\w| import |\ANPU[A-Z]", piece):
            yield head.start(), at


def _code_end(text: str, offset: int) -> int:
    """Return the end of code that starts with a name: after its brackets and the value assigned to it."""
    while offset < len(text):
        if text[offset] in _CLOSING:
            end = _end_of_bracket(text, offset)
            if end is None:
                return offset
            offset = end
        elif text[offset] == "=" and _VALUE.match(text, offset + 1):
            offset = _VALUE.match(text, offset + 1).end()  # type: ignore[union-attr]
            while text[offset - 1] == ".":
                offset -= 1
        elif text[offset] == "." and re.match(r"\.[A-Za-z_]\w*", text[offset:]):
            offset += len(re.match(r"\.\w+", text[offset:]).group())  # type: ignore[union-attr]
        else:
            return offset
    return offset


def _end_of_bracket(text: str, offset: int) -> int | None:
    depth = 0
    for index in range(offset, len(text)):
        depth += (text[index] == text[offset]) - (text[index] == _CLOSING[text[offset]])
        if not depth:
            return index + 1
    return None
