"""report.sarif: SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Dict, Iterator

from .. import __version__
from ..engine.results import CHANGE, ERROR, FINDING, UNREACHED, Diagnostic
from .content import Explanation, Report, ReportFile
from .explanation import doc_body_as_markdown, first_paragraph
from .regions import Regions
from .text import cpu_sentences, message_text, place_text

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {CHANGE: "note", FINDING: "warning", UNREACHED: "note", ERROR: "error"}
_Json = Dict[str, object]


def to_sarif(report: Report) -> Iterator[str]:
    """Return the SARIF report of a run, in pieces."""
    numbers = {rule.code: number for number, rule in enumerate(report.rules)}
    notifications = [
        {
            "associatedRule": {"id": diagnostic.code, "index": numbers[diagnostic.code]},
            "level": "error",
            "message": {"text": _message_text(diagnostic)},
            "locations": [location],
        }
        for file in report.files
        if file.result.unreadable
        for diagnostic, location, _ in _diagnostics_with_locations(file)
        if diagnostic.kind == ERROR
    ]
    driver = {
        "name": "convert_tf2npu",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule_json(rule) for rule in report.rules],
    }
    before, after = json.dumps(
        {
            "$schema": _SCHEMA,
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": driver},
                    "invocations": [
                        {
                            "executionSuccessful": not notifications,
                            "exitCode": report.exit_code,
                            "toolExecutionNotifications": notifications + _cpu_notifications(report),
                        }
                    ],
                    "columnKind": "utf16CodeUnits",
                    "originalUriBaseIds": {"SRC": {"uri": report.root_uri}},
                    "results": [],
                }
            ],
        },
        indent=1,
    ).rsplit("[]", 1)
    yield before
    between = "["
    for file in report.files:
        for diagnostic, location, fingerprint in _diagnostics_with_locations(file):
            result = {
                "ruleId": diagnostic.code,
                "ruleIndex": numbers[diagnostic.code],
                "level": _LEVEL[diagnostic.kind],
                "message": {"text": _message_text(diagnostic)},
                "locations": [location],
                "partialFingerprints": {"primaryLocationLineHash": fingerprint},
            }
            yield between + ("\n" + json.dumps(result, indent=1)).replace("\n", "\n    ")
            between = ","
    yield "[]" if between == "[" else "\n   ]"
    yield after + "\n"


def _cpu_notifications(report: Report) -> list[_Json]:
    """Return notifications about the files of TensorFlow 2 that no script runs on the NPU, modules apart."""
    notifications: list[_Json] = []
    for kind in ("script", "module"):
        files = [file for file in report.files if file.result.on_cpu == kind]
        locations = [
            {"physicalLocation": {"artifactLocation": {"uri": file.uri, "uriBaseId": "SRC"}}} for file in files
        ]
        for line in cpu_sentences([(file.name, file.result) for file in files]):
            notifications.append({"level": "warning", "message": {"text": line}, "locations": locations})
    return notifications


def _rule_json(rule: Explanation) -> _Json:
    level = "note" if rule.rewrites > rule.findings else "warning" if rule.findings else "error"
    why = first_paragraph(rule.doc) or rule.title + "."
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title + "."},
        "fullDescription": {"text": why},
        "help": {"text": rule.doc, "markdown": doc_body_as_markdown(rule.doc) or rule.title},
        "defaultConfiguration": {"level": level},
        "properties": {
            "tags": ["tensorflow", "ascend-npu"],
            "precision": "high",
            "problem.severity": {"note": "recommendation"}.get(level, level),
        },
    }


def _message_text(diagnostic: Diagnostic) -> str:
    where = place_text(diagnostic) + ": " if diagnostic.cell else ""  # people count lines in the cell
    return where + (message_text(diagnostic) if diagnostic.kind == ERROR else diagnostic.message) + "."


def _diagnostics_with_locations(file: ReportFile) -> Iterator[tuple[Diagnostic, _Json, str]]:
    """Return the diagnostics of a file, each with its location and a fingerprint that survives other changes."""
    regions = Regions(file)
    seen: dict[tuple[str, str], int] = Counter()
    for diagnostic in file.result.diagnostics:
        location: _Json = {
            "physicalLocation": {
                "artifactLocation": {"uri": file.uri, "uriBaseId": "SRC"},
                "region": regions.region_of(diagnostic),
            }
        }
        if diagnostic.cell:
            location["logicalLocations"] = [{"name": f"cell {diagnostic.cell}", "kind": "module"}]
        line = file.line(diagnostic).strip()
        digest = hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:16]
        seen[diagnostic.code, digest] += 1
        yield diagnostic, location, f"{digest}:{seen[diagnostic.code, digest]}"
