"""Assignments that a step makes beside updates that it may skip, as with loss scaling."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_graph, tf_session
from npu_shim.rehearsal.recording import methods

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Fetches, Function, Graph, Operation, Result, Session, Value

_SEEN = "npu_shim_assignments"  # attribute of a graph: the answers by the name of an assignment that is watched
_KNOWN = "npu_shim_assigning"  # attribute of a graph: the sets of fetches that were looked at
_SKIPS = "npu_shim_skips_updates"  # attribute of a graph: True if a run of it may have skipped an update
_UPDATES = re.compile("(Resource)?(Sparse)?Apply|Assign|(Resource)?Scatter")
_HIDES_UPDATES = re.compile("StatefulPartitionedCall$|If$|While$|Case$")
_CALLABLE = "make_callable"


def note_if_assignment(seen: Seen, value: Value) -> None:
    """Note as ``skips`` if runs of the graph of an assignment may skip updates of variables."""
    op: Operation = getattr(value, "op", value)
    if str(getattr(op, "type", "")).startswith("Assign"):
        setattr(op.graph, _SEEN, {**getattr(op.graph, _SEEN, {}), op.name: seen})
        if getattr(op.graph, _SKIPS, False):
            seen.note("skips", True)


def watch_assignments() -> None:
    """Watch the runs of all sessions."""
    hidden = tuple(name for name in tf_session.HIDDEN_RUNS if name != _CALLABLE)
    methods.wrap_methods(tf_session.BaseSession, ("run", _CALLABLE), _run_and_note_skipped_updates)
    methods.wrap_methods(tf_session.BaseSession, hidden, _note_hidden_run)


def _run_and_note_skipped_updates(
    original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
) -> Result:
    values = original(session, fetches, *args, **kwargs)  # of make_callable, a function that runs them
    assignments: dict[str, Seen] = getattr(session.graph, _SEEN, {})
    if assignments:
        fetched = tf_session.fetched_elements(session, fetches)
        key = len(assignments), *(element.name for element in fetched)
        known: frozenset[object] = getattr(session.graph, _KNOWN, frozenset())
        if key not in known:
            setattr(session.graph, _KNOWN, known | {key})
            ran = tf_graph.ops_with_ancestors([getattr(element, "op", element) for element in fetched])
            if any(map(_may_be_skipped_update, ran)):  # the assignment may be made in a run of its own
                _note_skips(session.graph)
            else:
                for op in ran:
                    if op.name in assignments:
                        assignments[op.name].note("skips", False)
    return values


def _may_be_skipped_update(op: Operation) -> bool:
    """Return True if an op updates a variable in a branch or a loop, or may do so in a function."""
    if _UPDATES.match(op.type):
        return tf_graph.contexts_around(op) != [None]
    return bool(_HIDES_UPDATES.match(op.type))


def _note_skips(graph: Graph) -> None:
    setattr(graph, _SKIPS, True)
    for seen in getattr(graph, _SEEN, {}).values():
        seen.note("skips", True)


def _note_hidden_run(original: Function, session: Session, *args: object, **kwargs: object) -> Result:
    _note_skips(session.graph)
    return original(session, *args, **kwargs)
