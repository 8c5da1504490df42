"""Edits that give a call the NPU session configuration."""

from __future__ import annotations

import ast
from typing import Iterator

from ..analysis.graph_rewrites import replaced_graph_rewrites
from ..analysis.host_operators import is_computed_on_host, runs_with_host_operators, sessions_of_file
from ..analysis.mixed_computing import OPTION as MIXED_COMPUTING
from ..analysis.predicting_sessions import OPTION as RUN_MODE, runs_that_predicted
from ..files.message import Message
from ..project.context import Context
from ..semantics.model import Call
from ..semantics.signatures import bind_arguments
from ..semantics.tf_types import Type
from ..syntax.expressions import is_none
from ..tf_api.name_tables import SESSION_PARAMETERS
from .call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap
from .change import Change, Finding

PRECISION_MODE = "precision_mode='allow_mix_precision'"


def default_config_text(context: Context) -> str:
    """Return the configuration of a session that has none."""
    return f"npu_config_proto({_precision_mode_text(context)})"


def _precision_mode_text(context: Context) -> str:
    return PRECISION_MODE if replaced_graph_rewrites(context) else ""


def configure_session(
    context: Context, node: ast.Call, call: Call, signature: tuple[str, ...], short: str
) -> Iterator[Change | Finding]:
    """Give a call the NPU session configuration, or report it if its arguments are hidden.

    Args:
        context: the file.
        node: the call with the arguments of the session, or one built from parts of it.
        call: the call in the file that is reported as changed.
        signature: the positional parameters of the function, with ``config`` or ``session_config``.
        short: the name of the function in messages.
    """
    source = context.source
    bound = bind_arguments(node, signature)
    name = "session_config" if "session_config" in signature else "config"
    config = bound.args.get(name)
    message = Message("{0} uses the NPU session configuration", short)
    observed = {
        f"{RUN_MODE}=0": runs_that_predicted(context, call),
        f"{MIXED_COMPUTING}=True": runs_with_host_operators(context, call),
    }
    runs = min((number for number in observed.values() if number is not None), default=None)
    options = [text for text, number in observed.items() if number is not None]
    mode = ", ".join(filter(None, [_precision_mode_text(context), *options]))
    own = f"npu_config_proto({mode})"
    if config is not None:
        if is_none(config):
            yield Change(call.node, message, (edit_to_rename(source, config, own),), ("npu_config_proto",), runs)
        elif context.types.type_of(config, call.where) != Type.NPU_CONFIG:
            after = f", {mode})" if mode else ")"
            edits = edits_to_wrap(source, config, "npu_config_proto(config_proto=", after)
            yield Change(call.node, message, edits, ("npu_config_proto",), runs)
        return
    if bound.hidden:
        yield Finding(
            call.node,
            "the arguments of {0} are hidden behind * or **. Wrap their config in npu_config_proto(config_proto=...)",
            short,
        )
        return
    edit = edit_to_add_argument(source, call.node, f"{name}={own}")
    if edit:
        yield Change(call.node, message, (edit,), ("npu_config_proto",), runs)


def needs_config(context: Context, call: Call, signature: tuple[str, ...]) -> bool:
    """Return True if configure_session() gives a call the NPU session configuration."""
    bound = bind_arguments(call.node, signature)
    config = bound.args.get("config")
    return not bound.hidden if config is None else context.types.type_of(config, call.where) != Type.NPU_CONFIG


def writes_mixed_computing(context: Context, kind: tuple[str, str]) -> bool:
    """Return True if configure_session() gives the option to all sessions that computed on the host.

    Args:
        context: the file.
        kind: of the operators, from ``analysis.host_operators``.
    """
    sessions = [call for call in context.names.calls if call.node in sessions_of_file(context)]
    return is_computed_on_host(context, kind) and all(
        needs_config(context, call, SESSION_PARAMETERS[context.called_names[call.node]])
        for call in sessions
        if runs_with_host_operators(context, call) is not None
    )
