"""Find loops and conditions of TensorFlow 1, which a graph with dynamic shapes cannot have on the NPU."""

from __future__ import annotations

import ast
import re
from typing import Pattern

from ..project.context import Context
from ..semantics.module_index import ModuleIndex, Names
from ..syntax.expressions import last_name, last_part
from .device_placement import may_run_on_npu, runs_on_npu
from .program_version import Version
from .tensorflow_version import version_verdict
from .tf_functions import is_traced

_CONTROL_FLOW = frozenset(
    "tensorflow." + name
    for name in """while_loop cond case map_fn scan foldl foldr nn.dynamic_rnn nn.bidirectional_dynamic_rnn nn.raw_rnn
contrib.rnn.stack_bidirectional_dynamic_rnn contrib.seq2seq.dynamic_decode""".split()
)
_WORDS = frozenset(map(last_part, _CONTROL_FLOW))
_CALL = re.compile(rb"\b(?:" + "|".join(sorted(_WORDS)).encode("ascii") + rb")\(")
_VERSION_2 = re.compile(rb"enable_control_flow_v2|enable_v2_behavior|ENABLE_FORCE_V2_CONTROL")
_NO_VERSION_2 = re.compile(rb"^[^#\n]*\bdisable_v2_behavior\(", re.MULTILINE)
_ONLY_GRAPHS = re.compile(rb"^[^#\n]*\bdisable_eager_execution\(", re.MULTILINE)


def control_flow_advice(context: Context, node: ast.AST) -> str:
    """Return what to do about such operations in a file of TensorFlow 1; "" if it runs none on the NPU.

    Args:
        context: the file.
        node: the call that gives the graph dynamic shapes. Only the first that asks gets the advice.
    """
    advice, asking = context.once(_advice_for_program), context.once(_nodes_with_advice)
    if advice and not asking:
        asking.append(node)
    return advice if asking == [node] else ""


def _nodes_with_advice(_: Context) -> list[ast.AST]:
    return []


def _advice_for_program(context: Context) -> str:
    if not context.names.once(_nodes_with_control_flow) and not _calls_imported_function_with_control_flow(context):
        return ""
    is_switched = _program_matches(context, _NO_VERSION_2)
    if (
        _program_matches(context, _VERSION_2)
        or version_verdict(context).version != Version.ONE
        or not is_switched
        and _program_matches(context, _ONLY_GRAPHS)  # TensorFlow 2, with its own loops
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


def _nodes_with_control_flow(names: Names) -> frozenset[ast.AST]:
    """Return what has such operations in a file: its functions and the statements around them."""
    return frozenset(
        parent
        for call in names.calls
        if last_name(call.node.func) in _WORDS
        and names.resolve(call.node.func, call.where) in _CONTROL_FLOW
        and may_run_on_npu(names, call.node)
        and not is_traced(names, call.node)
        for parent in names.ancestors(call.node)
    )


def _calls_imported_function_with_control_flow(context: Context) -> bool:
    """Return True if a file calls a function of another file with such operations."""
    names = context.names
    if not any(names.project.once(_file_matches, path, _CALL) for path in names.imported_files):
        return False
    for call in names.calls:
        function = names.function_definition(call.node.func, call.where)
        if (
            function is not None
            and function.names is not names
            and function.node in function.names.once(_nodes_with_control_flow)
            and runs_on_npu(context, call.node)
        ):
            return True
    return False


def _program_matches(context: Context, pattern: Pattern[bytes]) -> bool:
    """Return True if a pattern is in a file, in one that it imports, or in one that imports it."""
    if pattern.search(context.source.text.encode("utf-8", "replace")):
        return True
    names = context.names
    return any(
        names.project.once(_file_matches, other, pattern) for other in names.imported_files | names.importing_files
    )


def _file_matches(project: ModuleIndex, path: str, pattern: Pattern[bytes]) -> bool:
    return pattern.search(project.raw(path)) is not None
