"""The part of the HTML report by rule: manual changes, and rewrites."""

from __future__ import annotations

from typing import Iterator, Sequence, Tuple

from ...engine.results import CHANGE, ERROR, FINDING, UNREACHED, Diagnostic
from ..content import Explanation, Report, ReportFile
from ..explanation import doc_as_html
from ..language import Language
from .frame import escape_html
from .parts import (
    badges_html,
    file_id,
    filter_attributes,
    message_html,
    place_of_diagnostic,
    section_start_html,
    source_line_html,
)

_Place = Tuple[ReportFile, Diagnostic]


def manual_changes_section(report: Report) -> Iterator[str]:
    """Return the sections of the findings, by rule, and of the unreadable files."""
    yield from _section_html(
        "manual-changes",
        "Manual changes",
        report,
        FINDING,
        f'<p class="quiet">{report.translate("The tool found none.")}</p>',
    )
    if report.count(ERROR):
        yield from _section_html("unreadable", "Unreadable", report, ERROR)


def rewritten_section(report: Report) -> Iterator[str]:
    """Return the section of the rewrites, by rule, and that of the findings that no observed run reached."""
    yield from _section_html("rewritten", "Rewritten", report, CHANGE)
    if report.count(UNREACHED):
        yield from _section_html("unreached", "Not reached by the observed runs", report, UNREACHED)


def anchor(code: str, kind: str) -> str:
    """Return the anchor of a rule in the section of a kind of diagnostics."""
    return {CHANGE: "done-", UNREACHED: "unreached-"}.get(kind, "manual-") + code


def _section_html(name: str, title: str, report: Report, kind: str, nothing: str = "") -> Iterator[str]:
    number = report.count(kind)
    yield section_start_html(name, report.translate(title), number)
    if nothing and not number:
        yield nothing
    yield from _items_html(report, kind)
    yield "</section>"


def _items_html(report: Report, kind: str) -> Iterator[str]:
    places: dict[str, list[_Place]] = {}
    for file in report.files:
        for diagnostic in file.result.diagnostics:
            if diagnostic.kind == kind:
                places.setdefault(diagnostic.code, []).append((file, diagnostic))
    for rule in report.rules:
        if rule.code in places:
            yield from _item_html(rule, kind, places[rule.code], report.translate)


def _item_html(rule: Explanation, kind: str, places: Sequence[_Place], translate: Language) -> Iterator[str]:
    by_message: dict[str, list[_Place]] = {}
    for file, diagnostic in places:
        by_message.setdefault(diagnostic.message, []).append((file, diagnostic))
    name = anchor(rule.code, kind)
    yield (
        f'<details class="item rule" id="{name}"><summary><code class="code">{rule.code}</code> '
        f'<span class="title">{escape_html(translate(rule.title))}</span> '
        f"{badges_html([(kind, len(places))], translate)}"
        f'<a class="permalink" href="#{name}" aria-label="{translate("Link to {0}").format(rule.code)}">#</a></summary>'
    )
    for text, said in by_message.items():
        yield f'<div class="block"><p class="message">{message_html(text, translate)}</p><ul class="said">'
        for file, d in said:
            link = f'<a href="#{file_id(file)}">{place_of_diagnostic(file, d, translate)}</a>'
            yield f"<li {filter_attributes(file, d)}>{link} {source_line_html(file, d)}</li>"
        yield "</ul></div>"
    yield (
        f'<details class="explanation"><summary>{translate("About the rule")}</summary>\n'
        f"{doc_as_html(rule.doc, translate)}\n"
        "</details></details>"
    )
