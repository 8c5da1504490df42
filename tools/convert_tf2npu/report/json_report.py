"""report.json; docs/report-schema.md says what it holds."""
from __future__ import annotations

import json
from typing import Any, Dict

from ..results import CHANGE, FINDING, Calls, Diagnostic
from .model import Report

# Raised when a field goes, or changes its meaning; new fields do not raise it.
SCHEMA_VERSION = 1


def to_json(report: Report) -> str:
    """The JSON report of a run."""
    return json.dumps({
        'schema_version': SCHEMA_VERSION,
        'tool': 'convert_tf2npu',
        'source': report.source,
        'summary': {
            'files_read': len(report.files),
            'files_changed': sum(1 for f in report.files if f.result.new is not None),
            'files_unreadable': sum(1 for f in report.files if f.result.unreadable),
            'rewrites': report.count(CHANGE),
            'findings': report.count(FINDING),
            'tensorflow_calls': _calls(report.calls),
        },
        'rules': [{'code': r.code, 'title': r.title, 'help': r.doc, 'rewrites': r.rewrites,
                   'findings': r.findings, 'errors': r.errors} for r in report.rules],
        'files': [{'path': file.name, 'uri': file.uri, 'changed': file.result.new is not None,
                   'readable': not file.result.unreadable,
                   'tensorflow_calls': _calls(file.result.calls),
                   'diagnostics': [_diagnostic(d) for d in file.result.diagnostics]}
                  for file in report.files],
        'excluded': list(report.excluded),
        'left_out': list(report.left_out),
    }, indent=1) + '\n'


def _calls(calls: Calls) -> Dict[str, int]:
    return {'total': calls.total, 'fine': calls.fine, 'rewritten': calls.rewritten, 'left': calls.left}


def _diagnostic(diagnostic: Diagnostic) -> Dict[str, Any]:
    return {'kind': diagnostic.kind, 'code': diagnostic.code, 'message': diagnostic.message,
            'cell': diagnostic.cell or None, 'line': diagnostic.line or None,
            'column': diagnostic.col or None}
