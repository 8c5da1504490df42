"""Findings with the sizes that observed runs saw."""

from __future__ import annotations

import ast
from typing import Iterator

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


def size_findings(context: Context, code: str, finding: Finding) -> Iterator[Finding]:
    """Yield a finding with the sizes that were seen, for which it asks; nothing if they never reached the NPU."""
    node = finding.node
    if never_on_npu(context, code, ROWS, node):
        return
    seen = context.seen(code, ROWS, node)
    sizes = seen.values.get("rows") if seen is not None else None
    message = finding.message
    if sizes is not None and sizes.least is not None and sizes.most is not None:
        if sizes.least < sizes.most:
            message = Message("{0} (seen: {1} to {2})", message, int(sizes.least), int(sizes.most))
        else:
            message = Message("{0} (seen: always {1})", message, int(sizes.least))
    yield finding._replace(asks=finding.asks or (Question(ROWS, node),), message=message)
