"""Decide in which file the tool opens the NPU device."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..syntax.expressions import is_main_guard, last_name
from .describing import describes_package
from .device_placement import is_in_test
from .entry_points import SWITCHES, is_started
from .program_start import first_working_statement
from .tensorflow_evidence import ENABLING, OPEN
from .tensorflow_version import Version, may_train, version_verdict


def starts_training_without_device(context: Context) -> bool:
    """Return True if a file starts a program, no test, that trains and does not open the NPU device itself."""
    body = context.names.tree.body
    if not body or not is_started(context) or is_in_test(context, body[0]) or not may_train(context):
        return False
    judged = version_verdict(context)
    return judged.trains and not judged.opens and not describes_package(context.names)


def must_open_for_both_versions(context: Context) -> bool:
    """Return True if the tool must open the NPU device in a file of both versions, which gives Keras a session, too.

    The script disables eager execution under a condition, and else has eager code, before it begins its work.
    """
    if not starts_training_without_device(context) or version_verdict(context).version != Version.BOTH:
        return False
    first = first_working_statement(context)
    names = context.names
    switches = _eager_disabling_calls(context)
    return (
        first is not None
        and any(switches.values())
        and all(
            call.lineno < first.lineno and names.place(call).scope in (names.module, names.places[first].scope)
            for call in switches
        )
    )


def _eager_disabling_calls(context: Context) -> dict[ast.Call, bool]:
    """Return the calls that disable eager execution, and if they do so under a condition."""
    return {
        call: any(isinstance(p, ast.If) and not is_main_guard(p) for p in context.names.ancestors(call))
        for call, name in context.called_names.items()
        if name in SWITCHES
    }


def is_graph_mode_undecided(context: Context) -> bool:
    """Return True if a script trains with either version, and the tool cannot tell if it does so in a graph."""
    return (
        starts_training_without_device(context)
        and version_verdict(context).version == Version.BOTH
        and ENABLING.isdisjoint(context.called_names.values())  # NPU210
        and all(_eager_disabling_calls(context).values())  # without a condition it builds graphs
        and not must_open_for_both_versions(context)
    )


def must_open_device(context: Context) -> bool:
    """Return True if the tool must open the NPU device in a file."""
    return starts_training_without_device(context) and version_verdict(context).is_two


def device_opening_statement(context: Context) -> ast.stmt | None:
    """Return the statement of a file that opens the NPU device and makes it the default; None if there is none."""
    names = context.names
    opened = [call for call, name in context.called_names.items() if name in OPEN]
    defaults = [call.node for call in names.calls if last_name(call.node.func) == "as_default"] if opened else []
    statements = [parent for call in defaults for parent in names.ancestors(call) if isinstance(parent, ast.Expr)]
    return statements[0] if statements and not is_in_test(context, statements[0]) else None
