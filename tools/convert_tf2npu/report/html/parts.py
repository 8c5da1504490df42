"""Small pieces of the HTML report: text that may stand there, links, badges, lines of source."""

from __future__ import annotations

import html
import re
from typing import Iterable, Iterator

from ...engine.results import CHANGE, ERROR, FINDING, Diagnostic
from ..file_text import name_at
from ..model import ReportFile
from ..text import place

LABEL = {CHANGE: "rewritten", FINDING: "needs you", ERROR: "not read"}
LONGEST = 500  # characters of a line that are shown
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_HEAD = re.compile(r"(?<![\w.'])(?:from [\w.]+ import [\w.]+|[A-Za-z_]\w*(?:\.\w+)*|'[\w/:.-]+'(?!\w))")
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|[\w.+-]+")
_CLOSING = {"(": ")", "[": "]"}


def clean(text: str) -> str:
    """Text that may stand in HTML: escaped, with no character that HTML forbids."""
    return html.escape(_CONTROLS.sub("\ufffd", text))


def section_head(name: str, title: str, number: int) -> str:
    """The start of a section of the page."""
    return (
        '<section id="%s" aria-labelledby="%s-title"><h2 id="%s-title" tabindex="-1">%s <span class="number">'
        "%d</span></h2>" % (name, name, name, title, number)
    )


def badges(counts: Iterable[tuple[str, int]]) -> str:
    """Counts of things said, by kind."""
    return "".join(
        '<span class="badge %s">%d %s</span>'
        % (kind, number, "need you" if kind == FINDING and number > 1 else LABEL[kind])
        for kind, number in counts
        if number
    )


def file_id(file: ReportFile) -> str:
    """The anchor of a file: the same in every report on the same project."""
    return "file-" + html.escape(file.uri)


def data(file: ReportFile, diagnostic: Diagnostic) -> str:
    """What the page's script filters a line by."""
    return f'class="{diagnostic.kind}" data-kind="{diagnostic.kind}" data-rule="{diagnostic.code}" data-path="{clean(file.name)}"'


def where(file: ReportFile, diagnostic: Diagnostic) -> str:
    """A file and a place in it, as text."""
    found = place(diagnostic)
    return clean(file.name + (":" + found if found else ""))


def source_line(file: ReportFile, diagnostic: Diagnostic) -> str:
    """The line of source that is spoken of, with the name that stands at the place marked."""
    line = file.line(diagnostic)
    if not line.strip():
        return ""
    start, end = name_at(line, diagnostic.col or 1)
    blank = len(line) - len(line.lstrip())
    from_, to = max(blank, start - LONGEST // 2), start + LONGEST // 2
    pieces = line[from_:start], line[start:end], line[end:to]
    return '<code class="line">{}{}<mark>{}</mark>{}{}</code>'.format(
        "\u2026 " if from_ > blank else "",
        clean(pieces[0]),
        clean(pieces[1]),
        clean(pieces[2].rstrip()),
        " \u2026" if to < len(line) else "",
    )


def message(text: str) -> str:
    """What is said, with the code in it as buttons that copy it."""
    made, done = [], 0
    for start, end in code_in(text):
        made += [
            clean(text[done:start]),
            f'<button type="button" class="piece" title="Copy">{clean(text[start:end])}</button>',
        ]
        done = end
    return "".join(made) + clean(text[done:])


def code_in(text: str) -> Iterator[tuple[int, int]]:
    """Where in a message code stands: calls, dotted names, ``name=value``, names with an underscore."""
    at = 0
    while True:
        head = _HEAD.search(text, at)
        if not head:
            return
        at = _code_end(text, head.end())
        found = text[head.start() : at]
        if re.search(r"[(=_']|\w\w\.\w| import |\ANPU[A-Z]", found):
            yield head.start(), at


def _code_end(text: str, at: int) -> int:
    """Where code ends that starts with a name: behind its brackets, and the value given to it."""
    while at < len(text):
        if text[at] in _CLOSING:
            end = _closed(text, at)
            if end is None:
                return at
            at = end
        elif text[at] == "=" and _VALUE.match(text, at + 1):
            at = _VALUE.match(text, at + 1).end()  # type: ignore[union-attr]
            while text[at - 1] == ".":
                at -= 1
        elif text[at] == "." and re.match(r"\.[A-Za-z_]\w*", text[at:]):
            at += len(re.match(r"\.\w+", text[at:]).group())  # type: ignore[union-attr]
        else:
            return at
    return at


def _closed(text: str, at: int) -> int | None:
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == text[at]) - (text[index] == _CLOSING[text[at]])
        if not depth:
            return index + 1
    return None
