"""Sessions whose graphs have operators of the host: observed runs show which of them need mixed computing."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Call
from ..tf_api.name_tables import SESSION_PARAMETERS
from .device_placement import is_in_test
from .host_work import is_on_host
from .mixed_computing import OPTION
from .predicting_sessions import SESSIONS, observed_session
from .tensorflow_version import is_idle_session, is_tf2_program

# The rules that ask, and the attribute of the answer: if a session ran functions of Python, or used lookup tables.
PYTHON, TABLES = ("NPU237", "python"), ("NPU240", "tables")
# Words that leave the option to a person: Estimators and Keras make sessions of their own, mixed computing allows one
# step in a loop only, and batch normalization needs more than the option.
_REFUSED = OPTION.encode(), b"Estimator", b"keras", b"iterations_per_loop", b"batch_norm", b"BatchNorm"


def sessions_of_file(context: Context) -> tuple[ast.Call, ...]:
    """Return the sessions of a program of one file if the option for mixed computing can be written; else none."""
    return context.once(_sessions_of_file)


def _sessions_of_file(context: Context) -> tuple[ast.Call, ...]:
    names = context.names
    if names.importing_files:
        return ()
    texts = [context.source.raw, *map(names.project.raw, names.imported_files)]
    if any(word in raw for raw in texts for word in _REFUSED) or is_tf2_program(context):
        return ()
    sessions = [call for call in context.names.calls if context.called_names.get(call.node) in SESSION_PARAMETERS]
    return tuple(call.node for call in sessions) if all(_is_usual(context, call) for call in sessions) else ()


def _is_usual(context: Context, call: Call) -> bool:
    return context.called_names[call.node] in SESSIONS and not (
        is_in_test(context, call.node) or is_on_host(context, call.node) or is_idle_session(context, call.node)
    )


def runs_with_host_operators(context: Context, call: Call) -> int | None:
    """Return the number of observed runs of a session that needs mixed computing; None if none shows it."""
    if context.facts is None or call.node not in sessions_of_file(context):
        return None
    for code, attribute in (PYTHON, TABLES):
        seen = observed_session(context, code, call.node)
        if seen is not None and True in (seen.all(attribute) or ()):
            return seen.runs
    return None


def is_computed_on_host(context: Context, kind: tuple[str, str]) -> bool:
    """Return True if each session of the program was observed, and those with operators of a kind get the option.

    Args:
        context: the file.
        kind: PYTHON or TABLES.
    """
    code, attribute = kind
    answers = [observed_session(context, code, node) for node in sessions_of_file(context)]
    return None not in answers and any(True in (seen.all(attribute) or ()) for seen in answers if seen is not None)
