"""report.sarif: SARIF 2.1.0, for code scanning services and editors."""
from __future__ import annotations

import json
from typing import Any, Dict

from ..results import CHANGE, ERROR, FINDING, Diagnostic
from .explanation import markdown
from .model import Explanation, Report, ReportFile
from .text import message, place

_SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'
_LEVEL = {CHANGE: 'note', FINDING: 'warning', ERROR: 'error'}


def to_sarif(report: Report) -> str:
    """The SARIF report of a run."""
    numbers = {rule.code: number for number, rule in enumerate(report.rules)}
    return json.dumps({
        '$schema': _SCHEMA,
        'version': '2.1.0',
        'runs': [{
            'tool': {'driver': {'name': 'convert_tf2npu', 'rules': [_rule(r) for r in report.rules]}},
            'columnKind': 'unicodeCodePoints',
            'originalUriBaseIds': {'SRC': {'uri': report.root_uri}},
            'results': [_result(file, d, numbers[d.code])
                        for file in report.files for d in file.result.diagnostics],
        }],
    }, indent=1) + '\n'


def _rule(rule: Explanation) -> Dict[str, Any]:
    level = 'note' if rule.rewrites > rule.findings else 'warning' if rule.findings else 'error'
    return {'id': rule.code, 'shortDescription': {'text': rule.title + '.'},
            'help': {'text': rule.doc, 'markdown': markdown(rule.doc) or rule.title},
            'defaultConfiguration': {'level': level}}


def _result(file: ReportFile, diagnostic: Diagnostic, rule: int) -> Dict[str, Any]:
    text = message(diagnostic)
    location: Dict[str, Any] = {
        'physicalLocation': {'artifactLocation': {'uri': file.uri, 'uriBaseId': 'SRC'}}}
    if diagnostic.cell:  # a line of a cell is no line of the file
        text = '%s: %s' % (place(diagnostic), text)
        location['logicalLocations'] = [{'name': 'cell %d' % diagnostic.cell}]
    elif diagnostic.line:
        region = {'startLine': diagnostic.line}
        if diagnostic.col:
            region['startColumn'] = diagnostic.col
        location['physicalLocation']['region'] = region
    return {'ruleId': diagnostic.code, 'ruleIndex': rule, 'level': _LEVEL[diagnostic.kind],
            'message': {'text': text}, 'locations': [location]}
