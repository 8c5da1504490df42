"""The calls of TensorFlow, Keras and Horovod in a script, and the outcome of each.

These are the calls whose name resolves to one of them, and those that a rule recognizes by type, such as a method of a
dataset. Each counts once: as a finding if there is one for it, else as rewritten if a rule rewrites it, else as fine.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Dict, Iterable, Iterator, NamedTuple, Set, Tuple

from ..rules.base import Context
from ..semantics.model import Call
from .results import CHANGE, FINDING, FINE, ApiCall, Calls

_FAMILIES = ("tensorflow.", "keras.", "horovod.", "tensorflow_estimator.", "tf_slim.")
_FLAGS = ("tensorflow.flags.FLAGS.", "tensorflow.app.flags.FLAGS.")  # flag values belong to the script

Said = Dict[ast.AST, Set[Tuple[str, str]]]  # (kind, code) of the diagnostics, by node


class Fate(NamedTuple):
    """A call, its name, its outcome, and the codes of the rules with a diagnostic for it."""

    call: Call
    name: str
    outcome: str
    codes: tuple[str, ...]


def call_fates(context: Context, said: Said) -> Iterator[Fate]:
    """Return the TensorFlow, Keras and Horovod calls of a script, in the order in which they were found.

    Args:
        context: the script.
        said: the diagnostics of its nodes.
    """
    called = context.called_names
    for call in context.names.calls:
        name = called.get(call.node, "")
        known = name.startswith(_FAMILIES) and not name.startswith(_FLAGS)
        spoken = said.get(call.node)
        if spoken:
            kinds = {kind for kind, _ in spoken}
            yield Fate(
                call,
                name if known else _last_word(call.node.func, name),
                FINDING if FINDING in kinds else CHANGE,
                tuple(sorted({code for _, code in spoken})),
            )
        elif known:
            yield Fate(call, name, FINE, ())


def _last_word(function: ast.expr, name: str) -> str:
    if isinstance(function, ast.Attribute):
        return "." + function.attr
    return name.rpartition(":")[2] or (function.id if isinstance(function, ast.Name) else ".__call__")


def count_outcomes(outcomes: Iterable[Fate]) -> Calls:
    """Return the number of calls of each outcome."""
    number = Counter(fate.outcome for fate in outcomes)
    return Calls(number[FINE], number[CHANGE], number[FINDING])


def calls_with_places(context: Context, outcomes: Iterable[Fate]) -> list[ApiCall]:
    """Return the calls with their places, by place; the place of one inside an f-string is that of the string."""
    source = context.source
    calls = []
    for fate in outcomes:
        node = context.names.strings.get(fate.call.node, fate.call.node)
        line, col = source.line_col_of_node(node)
        calls.append(ApiCall(fate.name, line, col, fate.outcome, fate.codes))
    return sorted(calls, key=lambda call: (call.line, call.col))
