"""The part of the HTML report that goes by rule: what needs the user, and what was rewritten."""

from __future__ import annotations

from typing import Iterator, Sequence, Tuple

from ...engine.results import CHANGE, ERROR, FINDING, Diagnostic
from ..explanation import as_html
from ..model import Explanation, Report, ReportFile
from .parts import badges, clean, data, file_id, message, section_head, source_line, where

_Place = Tuple[ReportFile, Diagnostic]


def needs_you(report: Report) -> Iterator[str]:
    """What the user has to look at, rule by rule, and what could not be read."""
    yield from _section(
        "needs-you", "Needs you", report, FINDING, '<p class="quiet">Nothing that the tool knows of.</p>'
    )
    if report.count(ERROR):
        yield from _section("not-read", "Not read", report, ERROR)


def rewritten(report: Report) -> Iterator[str]:
    """What was rewritten, rule by rule."""
    yield from _section("rewritten", "Rewritten", report, CHANGE)


def anchor(code: str, left: bool) -> str:
    """The anchor of a rule in one of the two sections."""
    return ("needs-" if left else "done-") + code


def _section(name: str, title: str, report: Report, kind: str, nothing: str = "") -> Iterator[str]:
    number = report.count(kind)
    yield section_head(name, title, number)
    if nothing and not number:
        yield nothing
    yield from _items(report, kind)
    yield "</section>"


def _items(report: Report, kind: str) -> Iterator[str]:
    places: dict[str, list[_Place]] = {}
    for file in report.files:
        for diagnostic in file.result.diagnostics:
            if diagnostic.kind == kind:
                places.setdefault(diagnostic.code, []).append((file, diagnostic))
    for rule in report.rules:
        if rule.code in places:
            yield from _item(rule, kind, places[rule.code])


def _item(rule: Explanation, kind: str, places: Sequence[_Place]) -> Iterator[str]:
    by_message: dict[str, list[_Place]] = {}
    for file, diagnostic in places:
        by_message.setdefault(diagnostic.message, []).append((file, diagnostic))
    name = anchor(rule.code, kind != CHANGE)
    yield (
        f'<details class="item rule" id="{name}"><summary><code class="code">{rule.code}</code> <span class="title">{clean(rule.title)}'
        f'</span> {badges([(kind, len(places))])}<a class="permalink" href="#{name}" aria-label="Link to {rule.code}">#</a></summary>'
    )
    for text, said in by_message.items():
        yield f'<div class="told"><p class="message">{message(text)}</p><ul class="said">'
        for file, d in said:
            yield f'<li {data(file, d)}><a href="#{file_id(file)}">{where(file, d)}</a> {source_line(file, d)}</li>'
        yield "</ul></div>"
    yield f'<details class="explanation"><summary>What the rule does, and why</summary>\n{as_html(rule.doc)}\n</details></details>'
