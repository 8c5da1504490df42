"""Decide if a file trains eagerly, which the NPU does not support."""

from __future__ import annotations

from ..project.context import Context
from ..tf_api.canonical_names import is_only_version2
from .v2_behavior import switch

_EAGER = frozenset(
    {
        "tensorflow.GradientTape",
        "tensorflow.function",
        "tensorflow.enable_eager_execution",
        "tensorflow.enable_v2_behavior",
    }
)
_NOT_EAGER = frozenset({"tensorflow.disable_eager_execution", "tensorflow.disable_v2_behavior"})


def uses_eager(context: Context) -> bool:
    """Return True if a file enables eager execution, or uses names that only TensorFlow 2 has without disabling it."""
    names = set(context.called.values())
    if names & _EAGER:
        return True
    if (
        not names & _NOT_EAGER
        and not _gets_switch(context)
        and any(is_only_version2(context.names.spelled(c.node.func, c.where) or "") for c in context.names.calls)
    ):
        return True
    return any(
        context.resolve(d, f.where) in _EAGER
        for f in context.names.functions
        for d in getattr(f.node, "decorator_list", ())
    )


def _gets_switch(context: Context) -> bool:
    """Return True if the file is lifted to compat.v1 and gets the call that disables eager execution."""
    found = switch(context) if context.compat_v1 else None
    return found is not None and bool(found.edits)
