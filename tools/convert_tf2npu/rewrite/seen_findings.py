"""Findings with what observed runs saw: sizes, and if the NPU computes them at all."""

from __future__ import annotations

import ast
from typing import AbstractSet, Iterator

from ..analysis.device_placement import is_first_call, runs_on_npu
from ..facts.kinds import DTYPE, ROWS
from ..files.message import Message
from ..project.context import Context
from ..semantics.model import Call
from .change import Finding, Question

_HOST = frozenset({"data", "numpy"})


def was_never_on_npu(
    context: Context, code: str, kind: str, node: ast.AST, places: AbstractSet[object] = _HOST
) -> bool:
    """Return True if observed runs computed an expression only in the input pipeline or with NumPy.

    Args:
        context: the file.
        code: of the rule.
        kind: a kind of facts that has places.
        node: the expression.
        places: those that do not count.
    """
    seen = context.observed_at(code, kind, node)
    known = seen.all("place") if seen is not None else None
    return bool(known) and places >= set(known or ())


def questions_if_first(
    context: Context,
    code: str,
    call: Call,
    calls: frozenset[str],
    within: ast.AST,
    places: AbstractSet[object] = _HOST,
) -> tuple[Question, ...]:
    """Return the questions about the calls in a part of the file; () unless a call is the first that the NPU may run.

    Args:
        context: the file.
        code: of the rule.
        call: the call.
        calls: the names of the functions that count.
        within: the part of the file.
        places: those of facts that do not count.
    """
    if not runs_on_npu(context, call.node):
        return ()
    if context.facts is None and not is_first_call(context, call, calls, within):
        return ()
    nodes = [
        node
        for node in context.once(_npu_calls_by_part, calls).get(within, ())
        if not was_never_on_npu(context, code, DTYPE, node, places)
    ]
    if context.facts is not None and call.node not in nodes[:1]:
        return ()
    return tuple(Question(DTYPE, node) for node in nodes)


def _npu_calls_by_part(context: Context, calls: frozenset[str]) -> dict[ast.AST, list[ast.Call]]:
    """Return the calls of some names that the NPU may run, by each part of the file around them."""
    by_part: dict[ast.AST, list[ast.Call]] = {}
    for node, name in context.called_names.items():
        if name in calls and runs_on_npu(context, node):
            for around in {*context.names.ancestors(node), context.names.tree}:
                by_part.setdefault(around, []).append(node)
    return by_part


def size_findings(context: Context, code: str, finding: Finding, size: str = "rows") -> Iterator[Finding]:
    """Yield a finding with the sizes that were seen, for which it asks.

    Nothing if they never reached the NPU, or if eager code always computed one size: nothing is compiled anew then.

    Args:
        context: the file.
        code: of the rule.
        finding: without facts.
        size: ``rows``, the first dimension, or ``last``.
    """
    node = finding.node
    if was_never_on_npu(context, code, ROWS, node):
        return
    seen = context.observed_at(code, ROWS, node)
    sizes = seen.values.get(size) if seen is not None else None
    message = finding.message
    if sizes is not None and sizes.least is not None and sizes.most is not None:
        if seen is not None and seen.all("place") == ("eager",) and seen.times > 1 and sizes.least == sizes.most:
            return
        if sizes.least < sizes.most:
            message = Message("{0} (seen: {1} to {2})", message, int(sizes.least), int(sizes.most))
        else:
            message = Message("{0} (seen: always {1})", message, int(sizes.least))
    unused = seen is not None and seen.all("place") == ("graph",) and "rank" not in seen.values
    yield finding._replace(asks=finding.asks or (Question(ROWS, node),), message=message, unused=unused)
