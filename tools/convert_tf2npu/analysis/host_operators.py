"""Sessions whose graphs have operators of the host: observed runs show which of them need mixed computing."""

from __future__ import annotations

import ast

from ..facts.kinds import OP, VALUE
from ..project.context import Context
from ..semantics.model import Call
from ..semantics.signatures import ESTIMATOR, RUN_CONFIG, bind_arguments
from ..tf_api.name_tables import SESSION_PARAMETERS, calls_of_kind
from .device_placement import is_in_test
from .host_work import is_on_host
from .mixed_computing import OPTION
from .predicting_sessions import SESSIONS, observed_session
from .run_configs import arguments_without_effect
from .tensorflow_version import is_idle_session, is_tf2_program

# The rules that ask, and the attribute of the answer: if a session ran functions of Python, or used lookup tables.
PYTHON, TABLES = ("NPU237", "python"), ("NPU240", "tables")
_WRITER_OF_CONFIG = "NPU102"
_PUBLIC_TABLES = calls_of_kind("table")
# tensorflow.python.ops.lookup_ops has the functions of contrib.
TABLE_MAKERS = _PUBLIC_TABLES | {name.replace(".contrib.", ".") for name in _PUBLIC_TABLES}
# Words that leave the option to a person: Estimators and Keras make sessions of their own, mixed computing allows one
# step in a loop only, and batch normalization needs more than the option.
_REFUSED = OPTION.encode(), b"Estimator", b"keras", b"iterations_per_loop", b"batch_norm", b"BatchNorm"


_ESTIMATOR, _RUN_CONFIG = "tensorflow.estimator.Estimator", "tensorflow.estimator.RunConfig"
_BESIDE = frozenset({_ESTIMATOR, _RUN_CONFIG}) | {
    "tensorflow.estimator." + name
    for name in """EstimatorSpec EvalSpec TrainSpec train_and_evaluate export.PredictOutput
export.ServingInputReceiver export.build_parsing_serving_input_receiver_fn
export.build_raw_serving_input_receiver_fn experimental.stop_if_no_increase_hook
experimental.stop_if_no_decrease_hook experimental.stop_if_higher_hook experimental.stop_if_lower_hook""".split()
}


def sessions_of_file(context: Context) -> tuple[ast.Call, ...]:
    """Return the sessions of a program of one file if the option for mixed computing can be written; else none."""
    return context.once(_sessions_of_file)


def _sessions_of_file(context: Context) -> tuple[ast.Call, ...]:
    if _is_refused(context, _REFUSED):
        return ()
    sessions = [call for call in context.names.calls if context.called_names.get(call.node) in SESSION_PARAMETERS]
    return tuple(call.node for call in sessions) if all(_is_usual(context, call) for call in sessions) else ()


def _is_refused(context: Context, words: tuple[bytes, ...]) -> bool:
    """Return True if a program has files that import this one, one of some words, or TensorFlow 2."""
    names = context.names
    if names.importing_files:
        return True
    texts = [context.source.raw, *map(names.project.raw, names.imported_files)]
    return any(word in raw for raw in texts for word in words) or is_tf2_program(context)


def estimator_config_of_file(context: Context) -> ast.Call | None:
    """Return the configuration of the only Estimator of a program of one file; None if the option cannot be written."""
    return context.once(_estimator_config_of_file)


def _estimator_config_of_file(context: Context) -> ast.Call | None:
    if _is_refused(context, tuple(word for word in _REFUSED if word != b"Estimator")):
        return None
    called = [context.called_names.get(call.node, "") for call in context.names.calls]
    others = {name for name in called if name.startswith("tensorflow.estimator.") or name in SESSION_PARAMETERS}
    if not others <= _BESIDE or called.count(_ESTIMATOR) != 1 or called.count(_RUN_CONFIG) != 1:
        return None
    configs = [call for call in context.names.calls if context.called_names.get(call.node) == _RUN_CONFIG]
    estimators = [call for call in context.names.calls if context.called_names.get(call.node) == _ESTIMATOR]
    given = bind_arguments(estimators[0].node, ESTIMATOR).args.get("config")
    binding = context.names.only_binding(given, estimators[0].where) if isinstance(given, ast.Name) else None
    node, where = configs[0].node, configs[0].where
    bound = bind_arguments(node, RUN_CONFIG)
    is_replaced = not (bound.hidden or bound.unknown or arguments_without_effect(context, node, where))
    return node if is_replaced and node in (given, binding.node if binding is not None else None) else None


def runs_with_tables_in_estimator(context: Context) -> int | None:
    """Return the number of observed runs of an Estimator, the only one, with tables in its graph; None if unclear."""
    config, code = estimator_config_of_file(context), TABLES[0]
    seen = context.observed_at(code, VALUE, config) if config is not None else None
    if config is None or seen is None or context.observed_at(_WRITER_OF_CONFIG, VALUE, config) is None:
        return None
    answers = [
        context.observed_at(code, OP, node) for node, name in context.called_names.items() if name in TABLE_MAKERS
    ]
    return seen.runs if any(one is not None and one.only("in") == "graph" for one in answers) else None


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
