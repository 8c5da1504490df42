"""Decide if a file, or a program that it belongs to, trains eagerly."""

from __future__ import annotations

import re

from ..project.context import Context
from ..tf_api.canonical_names import is_known_tf2_spelling
from .entry_points import SWITCHES
from .v2_behavior import place_of_switch

_EAGER = frozenset(
    {
        "tensorflow.GradientTape",
        "tensorflow.function",
        "tensorflow.enable_eager_execution",
        "tensorflow.enable_v2_behavior",
    }
)
_EAGER_TEXT = re.compile(rb"GradientTape|@tf\.function|enable_eager_execution\(|enable_v2_behavior\(")
_GRAPH_TEXT = re.compile(rb"disable_(?:v2_behavior|eager_execution)\(")


def uses_eager(context: Context) -> bool:
    """Return True if a file enables eager execution, or uses names that only TensorFlow 2 has without disabling it."""
    return context.once(_uses_eager)


def _uses_eager(context: Context) -> bool:
    called = set(context.called_names.values())
    if called & _EAGER:
        return True
    if (
        not called & SWITCHES
        and not _gets_eager_disabling_call(context)
        and any(
            is_known_tf2_spelling(context.names.spelled_name(c.node.func, c.where) or "") for c in context.names.calls
        )
    ):
        return True
    return any(
        context.resolve(d, f.where) in _EAGER
        for f in context.names.functions
        for d in getattr(f.node, "decorator_list", ())
    )


def _gets_eager_disabling_call(context: Context) -> bool:
    """Return True if the file is lifted to compat.v1 and gets the call that disables eager execution."""
    place = place_of_switch(context) if context.compat_v1 else None
    return place is not None and not place.is_manual


def trains_eagerly(context: Context) -> bool:
    """Return True if a file belongs to a program that trains eagerly."""
    if uses_eager(context):
        return True
    programs = texts_of_file_and_importers(context)
    return any(_EAGER_TEXT.search(raw) for raw in programs) and not any(_GRAPH_TEXT.search(raw) for raw in programs)


def texts_of_file_and_importers(context: Context) -> list[bytes]:
    """Return the contents of a file and of all files that import it, directly or not."""
    names = context.names
    return [context.source.text.encode("utf-8", "replace"), *map(names.project.raw, names.importing_files)]
