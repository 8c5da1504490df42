"""Sessions: if their runs update variables, and if they have operators of the host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_graph, tf_session
from npu_shim._tensorflow.op_types import PYTHON_CALLS
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.saved_graphs import is_note

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Fetches, Function, Operation, Result, Session, Value

_SEEN = "_npu_shim_seen"  # attribute of a session that is watched: its answers, and the uses of sets of fetches
_TRAINS = re.compile("(Resource)?(Sparse)?Apply")
_UPDATES = re.compile("Assign(Add|Sub)|(Resource)?Scatter|StatefulPartitionedCall|If$|While$|Case$")
_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_TABLES = re.compile("LookupTable|(Mutable)?(DenseHash|Hash)Table|InitializeTable")
_READS = frozenset({"ReadVariableOp", "VariableV2", "Variable"})


def note_session(seen: Seen, value: Value) -> Value:
    """Note of each run of a session if an optimizer updates variables as ``trains``, if anything does as ``updates``.

    A function or a loop with state counts as an update; an initializer, or a restored variable, does not. Functions of
    Python are noted as ``python``, lookup tables as ``tables``.
    """
    if isinstance(value, tf_session.BaseSession):
        setattr(value, _SEEN, (seen, {}))
    return value


def watch_sessions() -> None:
    """Watch the runs of all sessions."""
    methods.wrap_methods(tf_session.BaseSession, ("run",), _run_and_note_updates)
    methods.wrap_methods(tf_session.BaseSession, tf_session.HIDDEN_RUNS, _note_other_run)


def _run_and_note_updates(
    original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
) -> Result:
    values = original(session, fetches, *args, **kwargs)
    if hasattr(session, _SEEN):
        seen, uses = getattr(session, _SEEN)
        fetched = tf_session.fetched_elements(session, fetches)
        key = tuple(element.name for element in fetched)
        if key not in uses:
            uses[key] = _answers_about([getattr(element, "op", element) for element in fetched])
            for attribute, value in uses[key].items():
                seen.note(attribute, value)
    return values


def _answers_about(ops: list[Operation]) -> dict[str, bool]:
    """Return the answers about a run of some ops."""
    ran = tf_graph.ops_with_ancestors(ops)
    trains = any(_TRAINS.match(op.type) for op in ran)
    updates = any(_UPDATES.match(op.type) or op.type in _ASSIGNS and _assigns_computed_value(op) for op in ran)
    return {
        "trains": trains,
        "updates": trains or updates,
        "python": any(op.type in PYTHON_CALLS and not is_note(op.name) for op in ran),
        "tables": any(_TABLES.match(op.type) for op in ran),
    }


def _assigns_computed_value(op: Operation) -> bool:
    """Return True if an assigned value is computed from variables."""
    return any(before.type in _READS for before in tf_graph.ops_with_ancestors([op.inputs[1].op]))


def _note_other_run(original: Function, session: Session, *args: object, **kwargs: object) -> Result:
    if hasattr(session, _SEEN):
        getattr(session, _SEEN)[0].note("updates", True)
    return original(session, *args, **kwargs)
