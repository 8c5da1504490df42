"""What observed runs say about a size, for findings."""

from __future__ import annotations

import ast

from ..facts.kinds import ROWS
from ..files.message import Message
from ..project.context import Context
from .change import Finding, Question


def never_on_npu(context: Context, code: str, kind: str, node: ast.AST) -> bool:
    """Return True if observed runs computed an expression only in the input pipeline or with NumPy.

    Args:
        context: the file.
        code: of the rule.
        kind: a kind of facts that has places.
        node: the expression.
    """
    seen = context.seen(code, kind, node)
    places = seen.all("place") if seen is not None else None
    return bool(places) and set(places or ()) <= {"data", "numpy"}


def size_finding(context: Context, code: str, finding: Finding) -> Finding | None:
    """Return a finding with the sizes that were seen, which it asks for; None if they never reached the NPU."""
    node = finding.node
    if never_on_npu(context, code, ROWS, node):
        return None
    finding = finding._replace(asks=finding.asks or (Question(ROWS, node),))
    seen = context.seen(code, ROWS, node)
    rows = seen.values.get("rows") if seen is not None else None
    if rows is None or rows.least is None or rows.most is None:
        return finding
    template = "{0} (seen: {1} to {2})" if rows.least < rows.most else "{0} (seen: always {1})"
    return finding._replace(message=Message(template, finding.message, int(rows.least), int(rows.most)))
