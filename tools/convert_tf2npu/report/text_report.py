"""report.txt: a run as plain text, manual changes first."""

from __future__ import annotations

from typing import Iterator

from ..engine.results import CHANGE, ERROR, FINDING
from . import text
from .model import Report
from .support import STATUSES

_SECTIONS = ((FINDING, "Manual changes"), (ERROR, "Unreadable"), (CHANGE, "Rewritten"))
_QUIET = ("supported", "migrated")  # only counted here; the HTML and JSON reports list all


def to_text(report: Report) -> Iterator[str]:
    """Return the text report of a run, in pieces."""
    for line in _lines(report):
        yield line + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"Migration of {report.source} to Ascend NPUs"
    yield ""
    yield from text.summary([(file.name, file.result) for file in report.files])
    for kind, title in _SECTIONS:
        yield from _section(report, kind, title)
    yield from _apis(report)
    for paths, title in (
        (report.excluded, "Excluded from the migration"),
        (report.left_out, "Not part of the migration"),
    ):
        yield from _headed(title, len(paths)) + list(paths) if paths else []


def _headed(title: str, number: int) -> list[str]:
    head = f"{title}: {number}"
    return ["", "", head, "=" * len(head)]


def _section(report: Report, kind: str, title: str) -> Iterator[str]:
    if not report.count(kind):
        return
    yield from _headed(title, report.count(kind))
    for rule in report.rules:
        said = [
            (file.name, d)
            for file in report.files
            for d in file.result.diagnostics
            if d.code == rule.code and d.kind == kind
        ]
        if said:
            yield ""
            yield f"{rule.code}  {rule.title} ({len(said)})"
            for name, diagnostic in said:
                yield text.diagnostic_line(name, diagnostic)


def _apis(report: Report) -> Iterator[str]:
    if not report.apis:
        return
    yield from _headed(f"API support on TensorFlow {report.tensorflow}, distinct APIs", len(report.apis))
    width = max(len(use.short_name) for use in report.apis)
    for status, (label, advice) in STATUSES.items():
        uses = [use for use in report.apis if use.status == status]
        if uses:
            yield ""
            yield f"{label} ({len(uses)}): {advice}"
            if status not in _QUIET:
                for use in uses:
                    yield f"  {use.short_name.ljust(width)}  {text.count(use.calls.total, 'call')}"
