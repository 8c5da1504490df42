"""The calls of TensorFlow, Keras and Horovod in a script, and what becomes of each.

They are the calls whose name says so, and those that a rule recognised by other means, such as the method
of a dataset. Each is counted once: as left where a finding is told of it, or else as rewritten where a rule
rewrites it, or else as fine.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Dict, Iterable, Iterator, NamedTuple, Set, Tuple

from ..rules.base import Context
from ..semantics.model import Call
from .results import CHANGE, FINDING, FINE, ApiCall, Calls

_FAMILIES = ("tensorflow.", "keras.", "horovod.", "tensorflow_estimator.", "tf_slim.")
_FLAGS = ("tensorflow.flags.FLAGS.", "tensorflow.app.flags.FLAGS.")  # the values of flags are the script's own

Said = Dict[ast.AST, Set[Tuple[str, str]]]  # (kind, code) of what was said, by node


class Fate(NamedTuple):
    """What becomes of a call: its name, the outcome, and the codes of the rules that spoke."""

    call: Call
    name: str
    outcome: str
    codes: tuple[str, ...]


def fates(context: Context, said: Said) -> Iterator[Fate]:
    """Each call of a script that counts, in the order in which they were found.

    Args:
        context: the script.
        said: what the rules said of its nodes.
    """
    called = context.called
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
    return name or (function.id if isinstance(function, ast.Name) else ".__call__")


def counts(found: Iterable[Fate]) -> Calls:
    """How many calls there are of each outcome."""
    number = Counter(fate.outcome for fate in found)
    return Calls(number[FINE], number[CHANGE], number[FINDING])


def places(context: Context, found: Iterable[Fate]) -> list[ApiCall]:
    """The calls with their places, in the order of the script; one inside an f-string stands at the string."""
    source = context.source
    made = []
    for fate in found:
        node = context.names.strings.get(fate.call.node, fate.call.node)
        line, col = source.place(node)
        made.append(ApiCall(fate.name, line, col, fate.outcome, fate.codes))
    return sorted(made, key=lambda call: (call.line, call.col))
