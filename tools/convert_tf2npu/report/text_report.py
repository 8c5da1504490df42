"""report.txt: a run as plain text, manual changes first."""

from __future__ import annotations

from typing import Iterator

from ..engine.results import CHANGE, ERROR, FINDING, UNREACHED
from . import text
from .content import Report
from .support import STATUSES
from .translation import display_width

SECTIONS = (
    (FINDING, "Manual changes"),
    (ERROR, "Unreadable"),
    (CHANGE, "Rewritten"),
    (UNREACHED, "Not reached by the observed runs"),
)
_QUIET = ("supported", "migrated")  # only counted here; the HTML and JSON reports list all


def to_text(report: Report) -> Iterator[str]:
    """Return the text report of a run, in pieces."""
    for line in _report_lines(report):
        yield line + "\n"


def _report_lines(report: Report) -> Iterator[str]:
    translate = report.translate
    yield translate("Migration of {0} to Ascend NPUs").format(report.source)
    yield ""
    yield from text.summary_sentences([(file.name, file.result) for file in report.files], translate)
    for kind, title in SECTIONS:
        yield from _section_lines(report, kind, translate(title))
    yield from _api_lines(report)
    for paths, title in (
        (report.excluded, "Excluded from the migration"),
        (report.left_out, "Not part of the migration"),
    ):
        yield from _heading_lines(translate(title), len(paths)) + list(paths) if paths else []


def _heading_lines(title: str, number: int) -> list[str]:
    head = f"{title}: {number}"
    return ["", "", head, "=" * display_width(head)]


def _section_lines(report: Report, kind: str, title: str) -> Iterator[str]:
    if not report.count(kind):
        return
    yield from _heading_lines(title, report.count(kind))
    for rule in report.rules:
        said = [
            (file.name, d)
            for file in report.files
            for d in file.result.diagnostics
            if d.code == rule.code and d.kind == kind
        ]
        if said:
            yield ""
            yield f"{rule.code}  {text.title_without_stop(rule.title, report.translate)} ({len(said)})"
            for name, diagnostic in said:
                yield text.diagnostic_line(name, diagnostic, report.translate)


def _api_lines(report: Report) -> Iterator[str]:
    if not report.apis:
        return
    translate = report.translate
    yield from _heading_lines(
        translate("API support on TensorFlow {0}, distinct APIs").format(report.tensorflow), len(report.apis)
    )
    longest = max(len(use.short_name) for use in report.apis)
    for status, (label, advice) in STATUSES.items():
        uses = [use for use in report.apis if use.status == status]
        if uses:
            yield ""
            yield f"{translate(label)} ({len(uses)}): {translate(advice)}"
            if status not in _QUIET:
                for use in uses:
                    yield f"  {use.short_name.ljust(longest)}  {text.count_text(use.calls.total, 'call', translate)}"
