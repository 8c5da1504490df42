"""Find the mixed precision graph rewrites that loss scaling and a precision mode of the sessions can replace."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from ..semantics.model import Call
from ..semantics.signatures import bind_arguments, session_method_parameters
from ..semantics.tf_types import Type
from ..semantics.value_flow import origins
from ..syntax.expressions import boxed_constant, is_main_guard, is_none, last_name
from ..tf_api.name_tables import SESSION_PARAMETERS
from .device_placement import enclosing_function, is_in_test
from .optimizers import CREATES_OPTIMIZER, creates_keras_optimizer, optimizer_role
from .tensorflow_version import is_tf2_program

GRAPH_REWRITES = frozenset(
    f"tensorflow.{home}enable_mixed_precision_graph_rewrite"
    for home in ("train.experimental.", "mixed_precision.", "mixed_precision.experimental.")
)
# Code of other files, and of Estimators and Keras, that may make the sessions of a program.
_MAKES_SESSIONS = re.compile(rb"[sS]ession\w*\(|Supervisor\(|(?:learning|training)\.train\(|gan_train\(|Estimator\(")
_TRAINS_OTHERWISE = re.compile(
    rb"Estimator\(|RunConfig\(|\.fit(?:_generator)?\(|\.train_on_batch\(|set_keras_session_npu_config\("
)
_CONDITIONAL = (ast.If, ast.IfExp, ast.Lambda, ast.For, ast.While, ast.Try, ast.BoolOp)


def replaced_graph_rewrites(context: Context) -> frozenset[ast.Call]:
    """Return the graph rewrites of a file that certainly hold for all sessions of its program, which it makes itself.

    ``NPULossScaleOptimizer`` scales the loss in their place, and the precision mode of each session computes in
    float16.
    """
    return context.once(_replaced_rewrites)


def _replaced_rewrites(context: Context) -> frozenset[ast.Call]:
    rewrites = [call for call in context.names.calls if context.called_names.get(call.node) in GRAPH_REWRITES]
    if not rewrites or not context.moves_precision or is_tf2_program(context) or "npu: ignore" in context.source.text:
        return frozenset()
    sessions = [(call, _session_parameters(context, call)) for call in context.names.calls]
    makers = [(call, parameters) for call, parameters in sessions if parameters]
    if (
        not makers
        or _has_other_sessions(context)
        or not all(_gets_precision_mode(context, *session) for session in makers)
    ):
        return frozenset()
    known = all(
        _is_rewrite_with_known_scale(context, call) and _runs_before(context, call, [s for s, _ in makers])
        for call in rewrites
    )
    return frozenset(call.node for call in rewrites) if known else frozenset()


def _session_parameters(context: Context, call: Call) -> tuple[str, ...]:
    """Return the parameters of a call that makes a session; none for another call."""
    function, name = call.node.func, context.called_names.get(call.node)
    if name == "tensorflow.train.MonitoredSession":
        return ("session_creator", "hooks", "stop_grace_period_secs")
    if name == "functools.partial":
        makes = call.node.args and context.resolve(call.node.args[0], call.where) in SESSION_PARAMETERS
        return ("func",) if makes else ()
    if name in SESSION_PARAMETERS:
        return SESSION_PARAMETERS[name]
    if isinstance(function, ast.Attribute):
        return session_method_parameters(context.types.type_of(function.value, call.where), function.attr) or ()
    return ()


def _gets_precision_mode(context: Context, call: Call, parameters: tuple[str, ...]) -> bool:
    """Return True if the tool certainly gives a session a configuration with the mode."""
    bound = bind_arguments(call.node, parameters)
    config = bound.args.get("session_config" if "session_config" in parameters else "config")
    if bound.hidden or context.called_names.get(call.node) == "functools.partial" or "session_creator" in bound.args:
        return False
    return config is None or is_none(config) or context.types.type_of(config, call.where) != Type.NPU_CONFIG


def _has_other_sessions(context: Context) -> bool:
    """Return True if something else than the sessions that a file makes may train its program."""
    if _TRAINS_OTHERWISE.search(context.source.text.encode("utf-8", "replace")):
        return True
    names = context.names
    others = names.imported_files | names.importing_files
    return any(_MAKES_SESSIONS.search(names.project.raw(other)) for other in others)


def _is_rewrite_with_known_scale(context: Context, call: Call) -> bool:
    """Return True for a rewrite of an optimizer of tf.train with the default scale or one that is written there."""
    bound = bind_arguments(call.node, ("opt", "loss_scale"))
    given = bound.args.get("loss_scale")
    if (
        bound.hidden
        or bound.unknown
        or "opt" not in bound.args
        or (given is not None and boxed_constant(given) is None)
    ):
        return False
    makers = origins(bound.args["opt"], call.where, context.names)
    return bool(makers) and not is_in_test(context, call.node) and all(
        isinstance(maker.node, ast.Call)
        and optimizer_role(maker.node, maker.where, maker.names) == CREATES_OPTIMIZER
        and not creates_keras_optimizer(maker.node, maker.where, maker.names)
        for maker in makers
    )  # fmt: skip


def _runs_before(context: Context, call: Call, sessions: list[Call]) -> bool:
    """Return True if a rewrite runs before each of some sessions is made: in its function, or called by that.

    TensorFlow rewrites no graph of a session that was made earlier.
    """
    around, node = enclosing_function(context, call.node), call.node
    if _is_conditional(context, node):
        return False
    if any(enclosing_function(context, session.node) is not around for session in sessions):
        callers = [c for c in context.names.calls if last_name(c.node.func) == getattr(around, "name", None)]
        if len(callers) != 1:
            return False
        node = callers[0].node
        around = enclosing_function(context, node)
    return not _is_conditional(context, node) and all(
        enclosing_function(context, session.node) is around and node.lineno < session.node.lineno
        for session in sessions
    )


def _is_conditional(context: Context, node: ast.expr) -> bool:
    """Return True if an expression runs only sometimes when its function, or the program, does."""
    body = enclosing_function(context, node)
    if any(isinstance(p, (ast.Return, ast.Raise)) and p.lineno < node.lineno for p in ast.walk(body)):
        return True  # it may have ended before
    for parent in context.names.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(parent, _CONDITIONAL) and not is_main_guard(parent):
            return True
    return False
