"""Trace a dataset: does it repeat forever, and are its batches taken apart again?"""

from __future__ import annotations

import ast
import itertools

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.module_index import Names
from ..semantics.tf_types import DATASET_METHODS, Type
from ..semantics.value_flow import origins
from ..syntax.expressions import boxed_constant, last_name, values_of

_KEEPS_ON = frozenset(
    """shuffle map prefetch filter cache with_options interleave flat_map enumerate shard
map_with_legacy_function""".split()
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_dataset(node: ast.AST, where: Where, names: Names, being_checked: frozenset[int] = frozenset()) -> bool:
    """Return True if an expression is a dataset, also one that all calls of a method pass to it.

    Args:
        node: the expression.
        where: its place.
        names: the names of its module.
        being_checked: the expressions that are being checked.
    """
    if names.types.type_of(node, where) == Type.DATASET:
        return True
    if id(node) in being_checked:
        return False
    being_checked |= {id(node)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DATASET_METHODS:
        return is_dataset(node.func.value, where, names, being_checked)
    sources = origins(node, where, names, follows_methods=True)
    return bool(sources) and all(
        is_dataset(origin.node, origin.where, origin.names, being_checked) for origin in sources
    )


def batched_dataset(context: Context, node: ast.Call) -> ast.AST:
    """Return the expression that is the dataset of batches: the call itself, or ``dataset.apply(call)``."""
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.Call):
            applied = isinstance(parent.func, ast.Attribute) and parent.func.attr == "apply" and node in parent.args
            return parent if applied else node
        if isinstance(parent, ast.stmt):
            break
    return node


def repeats_forever(context: Context, node: ast.AST, where: Where, depth: int = 20) -> bool:
    """Return True if a dataset repeats forever before it is batched, so that no batch is partial."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method == "repeat" and _is_endless_repeat(node):
            return True
        if method == "apply" and node.args and isinstance(node.args[0], ast.Call):
            name = context.resolve(node.args[0].func, where) or ""
            if name.endswith(".shuffle_and_repeat") and _is_endless_repeat(node.args[0], 1):
                return True
            if not name.endswith((".parallel_interleave", ".shuffle_and_repeat", ".ignore_errors")):
                return False
        elif method not in _KEEPS_ON and method != "repeat":
            return False
        node = node.func.value
    binding = context.names.only_binding(node, where, "value")
    if binding is None or binding.node is None:
        return False
    # A name without other bindings may refer to itself.
    return depth > 0 and repeats_forever(context, binding.node, binding.where, depth - 1)


def is_cached(context: Context, node: ast.AST) -> bool:
    """Return True if the expression around a dataset keeps its elements in a cache."""
    around = context.names.ancestors(node)
    return any(getattr(parent, "attr", "") == "cache" for parent in itertools.takewhile(_is_expression, around))


def _is_expression(node: ast.AST) -> bool:
    return isinstance(node, ast.expr)


def may_vary_by_epoch(context: Context, node: ast.AST, where: Where, depth: int = 20) -> bool:
    """Return True if a dataset may have another order, or another end, in each epoch."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method == "shuffle":
            return not any(
                k.arg == "reshuffle_each_iteration" and boxed_constant(k.value) == (False,) for k in node.keywords
            )
        if method == "cache" or method not in _KEEPS_ON and method not in ("skip", "take"):
            return method not in ("cache", "from_tensor_slices")
        node = node.func.value
    bindings = context.names.bindings_of_name(node.id, where) or [] if isinstance(node, ast.Name) else []
    return not bindings or any(
        b.kind != "value" or b.node is None or not depth or may_vary_by_epoch(context, b.node, b.where, depth - 1)
        for b in bindings
    )


def _is_endless_repeat(call: ast.Call, place: int = 0) -> bool:
    counts: list[ast.expr] = call.args[place : place + 1] + [k.value for k in call.keywords if k.arg == "count"]
    return not counts or boxed_constant(counts[0]) in ((None,), (-1,))


def is_in_window_function(context: Context, node: ast.AST) -> bool:
    """Return True if code is in the function that batches the windows of group_by_window."""
    functions = {p for p in context.names.ancestors(node) if isinstance(p, _FUNCTIONS)}
    return bool(functions) and not functions.isdisjoint(context.names.once(_functions_given_to_group_by_window))


def _functions_given_to_group_by_window(names: Names) -> frozenset[ast.AST]:
    """Return what a file passes to group_by_window."""
    passed = set()
    for call in names.calls:
        if last_name(call.node.func) == "group_by_window":
            for value in values_of(call.node):
                is_name = isinstance(value, (ast.Name, ast.Attribute))
                definition = names.definition(value, call.where) if is_name else (value, names)
                passed.update([definition[0]] if definition else [])
    return frozenset(passed)


def is_unbatched_later(context: Context, batch_call: ast.AST) -> bool | None:
    """Return True if a later call takes these batches apart, so a partial batch has no effect; None if it depends."""
    certain: list[bool] = []
    for call, before in context.once(_unbatch_calls):
        if batch_call in before:
            around_it = set(context.names.ancestors(batch_call))
            certain.append(
                all(
                    parent in around_it
                    for parent in context.names.ancestors(call)
                    if isinstance(parent, (ast.If, ast.IfExp, ast.For, ast.While))
                )
            )
    return True if any(certain) else None if certain else False


def is_repeated_later(context: Context, batch_call: ast.AST) -> bool:
    """Return True if a later call repeats these batches forever."""
    return any(batch_call in before and _is_endless_repeat(call) for call, before in context.once(_repeat_calls))


def _repeat_calls(context: Context) -> list[tuple[ast.Call, set[ast.AST]]]:
    return _calls_with_sources(context, "repeat")


def _unbatch_calls(context: Context) -> list[tuple[ast.Call, set[ast.AST]]]:
    return _calls_with_sources(context, "unbatch")


def _calls_with_sources(context: Context, method: str) -> list[tuple[ast.Call, set[ast.AST]]]:
    """Return the calls of a method of datasets, each with the expressions from which its dataset comes."""
    calls = []
    for call in context.names.calls:
        function = call.node.func
        if not isinstance(function, ast.Attribute):
            continue
        applied = call.node.args[0] if function.attr == "apply" and call.node.args else None
        if (
            function.attr == method
            or isinstance(applied, ast.Call)
            and (context.resolve(applied.func, call.where) or "").endswith("." + method)
        ):
            before: set[ast.AST] = set()
            _collect_preceding_expressions(context, function.value, call.where, before)
            calls.append((call.node, before))
    return calls


def _collect_preceding_expressions(context: Context, node: ast.AST, where: Where, chain: set[ast.AST]) -> None:
    while node not in chain:
        chain.add(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Name):
            for binding in context.names.bindings_of_name(node.id, where) or ():
                if binding.kind == "value" and binding.node is not None:
                    _collect_preceding_expressions(context, binding.node, binding.where, chain)
