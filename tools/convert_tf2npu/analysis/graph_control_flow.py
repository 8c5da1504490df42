"""Find loops and conditions of TensorFlow 1, which a graph with dynamic shapes cannot have on the NPU."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from .device_placement import runs_on_npu
from .program_version import Version
from .tensorflow_version import verdict
from .tf_functions import is_traced

_CONTROL_FLOW = frozenset(
    "tensorflow." + name
    for name in """while_loop cond case map_fn scan foldl foldr nn.dynamic_rnn nn.bidirectional_dynamic_rnn nn.raw_rnn
contrib.rnn.stack_bidirectional_dynamic_rnn contrib.seq2seq.dynamic_decode""".split()
)
_VERSION_2 = re.compile(rb"enable_control_flow_v2|enable_v2_behavior|ENABLE_FORCE_V2_CONTROL")
_NO_VERSION_2 = re.compile(rb"^[^#\n]*\bdisable_v2_behavior\(", re.MULTILINE)
_ONLY_GRAPHS = re.compile(rb"^[^#\n]*\bdisable_eager_execution\(", re.MULTILINE)


def control_flow_advice(context: Context, node: ast.AST) -> str:
    """Return what to do about such operations in a file of TensorFlow 1; "" if it has none on the NPU.

    Args:
        context: the file.
        node: the call that gives the graph dynamic shapes. Only the first that asks gets the advice.
    """
    advice, asking = context.once(_advice), context.once(_asking)
    if advice and not asking:
        asking.append(node)
    return advice if asking == [node] else ""


def _asking(_: Context) -> list[ast.AST]:
    return []


def _advice(context: Context) -> str:
    if not any(name in _CONTROL_FLOW and _is_of_version1(context, call) for call, name in context.called.items()):
        return ""
    texts = _texts_of_program(context)
    is_switched = any(map(_NO_VERSION_2.search, texts))
    if (
        any(map(_VERSION_2.search, texts))
        or verdict(context).version != Version.ONE
        or not is_switched
        and any(map(_ONLY_GRAPHS.search, texts))  # TensorFlow 2, with its own loops
    ):
        return ""
    if is_switched:
        return (
            "the loops and conditions of TensorFlow 1 need static shapes. Call enable_control_flow_v2() and "
            "enable_resource_variables() of tf.compat.v1 after disable_v2_behavior()"
        )
    return (
        "a graph with dynamic shapes cannot have the loops and conditions of TensorFlow 1. Call "
        "tf.enable_control_flow_v2() and tf.enable_resource_variables() after the import"
    )


def _is_of_version1(context: Context, call: ast.Call) -> bool:
    return runs_on_npu(context, call) and not is_traced(context.names, call)


def _texts_of_program(context: Context) -> list[bytes]:
    """Return the contents of a file, of those that it imports, and of those that import it."""
    project, path = context.names.project, context.names.path
    own = context.source.text.encode("utf-8", "replace")
    if project is None or path not in project.paths:
        return [own]
    others = (project.with_imports(path) | project.with_importers({path})) - {path}
    return [own, *map(project.raw, sorted(others))]
