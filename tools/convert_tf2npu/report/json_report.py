"""report.json, described in docs/report-schema.md and, for programs, in docs/report.schema.json."""

from __future__ import annotations

import json
from typing import Iterable, Iterator

from .. import __version__
from ..engine.results import CHANGE, FINDING, ApiCall, Calls, Diagnostic
from .api_table import ApiUse
from .content import Report
from .support import STATUSES

# Raised if a field is removed or changes its meaning; new fields do not raise it.
SCHEMA_VERSION = 1


def to_json(report: Report) -> Iterator[str]:
    """Return the JSON report of a run, in pieces, with each entry of a list on a line of its own."""
    yield "{\n"
    for number, (name, value) in enumerate(_report_fields(report)):
        yield "{}{}: ".format(",\n" if number else "", json.dumps(name))
        yield from [json.dumps(value)] if isinstance(value, (str, int, dict)) else _json_array_lines(value)
    yield "\n}\n"


def _json_array_lines(entries: Iterable[object]) -> Iterator[str]:
    before = "[\n"
    for entry in entries:
        yield before + json.dumps(entry)
        before = ",\n"
    yield "[]" if before == "[\n" else "\n]"


def _report_fields(report: Report) -> Iterator[tuple[str, str | int | dict[str, object] | Iterable[object]]]:
    yield "schema_version", SCHEMA_VERSION
    yield "tool", "convert_tf2npu"
    yield "tool_version", __version__
    yield "source", report.source
    yield (
        "summary",
        {
            "files_read": len(report.files),
            "files_changed": sum(1 for f in report.files if f.result.new is not None),
            "files_unreadable": sum(1 for f in report.files if f.result.unreadable),
            "files_on_cpu": sum(1 for f in report.files if f.result.on_cpu),
            "rewrites": report.count(CHANGE),
            "findings": report.count(FINDING),
            "tensorflow_calls": _calls_json(report.calls),
        },
    )
    yield (
        "rules",
        [
            {
                "code": r.code,
                "title": r.title,
                "help": r.doc,
                "rewrites": r.rewrites,
                "findings": r.findings,
                "errors": r.errors,
            }
            for r in report.rules
        ],
    )
    yield (
        "files",
        (
            {
                "path": file.name,
                "uri": file.uri,
                "changed": file.result.new is not None,
                "readable": not file.result.unreadable,
                "on_cpu": bool(file.result.on_cpu),
                "tensorflow_calls": _calls_json(file.result.calls),
                "diagnostics": [_diagnostic_json(d) for d in file.result.diagnostics],
            }
            for file in report.files
        ),
    )
    yield "support_list", report.tensorflow
    yield "apis", (_api_json(use) for use in report.apis)
    yield "excluded", list(report.excluded)
    yield "left_out", list(report.left_out)


def _calls_json(calls: Calls) -> dict[str, int]:
    return {"total": calls.total, "fine": calls.fine, "rewritten": calls.rewritten, "left": calls.left}


def _diagnostic_json(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "kind": diagnostic.kind,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "cell": diagnostic.cell or None,
        "line": diagnostic.line or None,
        "column": diagnostic.col or None,
        **({} if diagnostic.runs is None else {"runs": diagnostic.runs}),
    }


def _api_json(use: ApiUse) -> dict[str, object]:
    return {
        "name": use.name,
        "support": use.status,
        "advice": STATUSES[use.status].advice,
        "rules": list(use.codes),
        "files": use.files,
        "calls": _calls_json(use.calls),
        "places": [_place_json(number, call) for number, call in use.places],
    }


def _place_json(number: int, call: ApiCall) -> list[object]:
    return [number, call.cell or None, call.line, call.col, call.outcome]
