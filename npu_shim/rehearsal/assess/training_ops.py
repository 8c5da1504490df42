"""Decide if operations train, those of the functions that they run included."""

from __future__ import annotations

import re
from typing import Iterable

from npu_shim._tensorflow import tf_capture, tf_graph
from npu_shim._tensorflow.types import Graph, Operation

UPDATE_OPS = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")
_ASSIGN = re.compile(r"Assign(Add|Sub)?(VariableOp)?$|(Resource)?Scatter(Add|Sub|Update)$")
GRADIENT_SCOPE = re.compile(r"(^|/)gradients?(_tape|_\d+)?/")


def all_ops_with_functions(graph: Graph) -> list[Operation]:
    """Return the operations of a graph and of the functions that they run."""
    return _with_function_ops(graph.get_operations())


def needed_ops_with_functions(ops: Iterable[Operation]) -> list[Operation]:
    """Return operations, those that run before them, and those of the functions that these run."""
    return _with_function_ops([*tf_graph.ops_with_ancestors(ops)])


def has_gradient_updates(ops: list[Operation]) -> bool:
    """Return True if operations update variables by gradients.

    An optimizer's operator says so itself. An optimizer written with assignments has gradients before them: their names
    are those of tf.gradients or of a tape. A tf.function may return gradients to an optimizer outside.
    """
    if any(UPDATE_OPS.match(op.type) for op in ops):
        return True
    gradients = any(GRADIENT_SCOPE.search(op.name) for op in ops)
    is_function = gradients and hasattr(ops[0].graph, "outer_graph")
    return gradients and (is_function or any(_ASSIGN.match(op.type) for op in ops))


def ops_with_training_functions(ops: Iterable[Operation]) -> list[Operation]:
    """Return the operations that have a training step as their function, as parts of a dataset may."""
    return [op for op in ops if has_gradient_updates(_ops_of_functions(op))]


def _with_function_ops(ops: list[Operation]) -> list[Operation]:
    return ops + [inner for op in ops for inner in _ops_of_functions(op)]


def _ops_of_functions(op: Operation) -> list[Operation]:
    """Return the operations of the functions that an operation runs: calls, loops, branches, parts of datasets."""
    names = [attribute.func.name for attribute in op.node_def.attr.values() if attribute.HasField("func")]
    bodies = [tf_capture.function_body(op.graph, name) for name in names]
    return [inner for body in bodies if body is not None for inner in all_ops_with_functions(body)]
