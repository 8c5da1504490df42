"""Find loops and conditions of TensorFlow 1, which a graph with dynamic shapes cannot have on the NPU."""

from __future__ import annotations

import re

from ..project.context import Context
from .eager_training import program_texts
from .tensorflow_version import is_two

ADVICE = (
    "a graph with dynamic shapes cannot have the loops and conditions of TensorFlow 1. Call "
    "tf.enable_control_flow_v2() and tf.enable_resource_variables() after the import"
)
_CONTROL_FLOW = re.compile(
    rb"(?<!def )\b(?:while_loop|dynamic_rnn|bidirectional_dynamic_rnn|raw_rnn|dynamic_decode|map_fn|scan|foldl|foldr|"
    rb"tf\.cond|tf\.case|control_flow_ops\.cond|v1\.cond)\("
)
_VERSION_2 = re.compile(rb"enable_control_flow_v2|ENABLE_FORCE_V2_CONTROL")


def has_old_control_flow(context: Context) -> bool:
    """Return True if a file of TensorFlow 1, or a file that it imports, has such operations."""
    return context.once(_has_old_control_flow)


def _has_old_control_flow(context: Context) -> bool:
    project, path = context.names.project, context.names.path
    texts = [context.source.text.encode("utf-8", "replace")]
    if project is not None and path in project.paths:
        texts += [project.raw(file) for file in sorted(project.with_imports(path) - {path})]
    return (
        any(map(_CONTROL_FLOW.search, texts))
        and not any(map(_VERSION_2.search, [*texts, *program_texts(context)]))
        and not is_two(context)
    )
