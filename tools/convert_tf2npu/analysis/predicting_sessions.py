"""Decide if a session only predicts: the source shows nothing that trains, or observed runs saw no update."""

from __future__ import annotations

import ast

from ..facts.kinds import SESSION
from ..facts.seen import Seen
from ..project.context import Context
from ..semantics.model import Call
from ..semantics.tf_types import SESSIONS
from ..syntax.expressions import last_name, last_part
from .device_placement import is_in_test, never_trains
from .host_work import is_on_host
from .tensorflow_version import is_idle_session

CODE = "NPU283"  # of the rule that asks
_WRITER = "NPU101"
OPTION = "graph_run_mode"
_GRAPHS = frozenset(
    """tensorflow.import_graph_def tensorflow.graph_util.import_graph_def tensorflow.train.import_meta_graph
tensorflow.saved_model.load tensorflow.saved_model.loader.load""".split()
)
_SAVERS = frozenset({"tensorflow.train.Saver"})


def seems_to_predict(context: Context, call: Call) -> bool:
    """Return True if nothing in the source shows that a session trains, and the file runs a loaded model."""
    return (
        OPTION not in context.source.text
        and context.once(_runs_loaded_model)
        and never_trains(context)
        and not is_in_test(context, call.node)
        and not is_on_host(context, call.node)
        and not is_idle_session(context, call.node)
    )


def runs_that_predicted(context: Context, call: Call) -> int | None:
    """Return the number of observed runs in which a session that seems to predict did nothing else; None without."""
    if (
        context.facts is None
        or context.called_names.get(call.node) not in SESSIONS
        or not seems_to_predict(context, call)
    ):
        return None
    seen = observed_session(context, CODE, call.node)
    return seen.runs if seen is not None and seen.only("updates") is False else None


def observed_session(context: Context, code: str, node: ast.AST) -> Seen | None:
    """Return what observed runs saw of a session whose configuration they decide; None for none.

    Facts are also left out where the rule that writes the configuration uses none.

    Args:
        context: the file.
        code: of the rule that asks.
        node: the call that makes the session.
    """
    return context.observed_at(code, SESSION, node) if context.observed_at(_WRITER, SESSION, node) else None


def _runs_loaded_model(context: Context) -> bool:
    """Return True if a file loads a trained model and runs it."""
    calls = context.names.calls
    words = {call.node.func.attr for call in calls if isinstance(call.node.func, ast.Attribute)}
    wanted = _GRAPHS | _SAVERS if "restore" in words else _GRAPHS
    last = {last_part(name) for name in wanted}
    return not words.isdisjoint(("run", "eval")) and any(
        last_name(c.node.func) in last and context.resolve(c.node.func, c.where) in wanted for c in calls
    )
