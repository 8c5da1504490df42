"""The edits that reduce all values by the mask of the k largest, instead of the k largest."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..analysis.row_functions import REDUCTIONS
from ..facts.kinds import ROWS
from ..files.message import Message
from ..project.context import Context
from ..semantics.mentions import reads_of_assigned_name
from ..semantics.model import Call
from ..semantics.signatures import bind_arguments
from ..syntax.expressions import boxed_constant, index_of, last_part
from ..syntax.source import Edit
from .call_edits import argument_end, argument_start, edit_to_rename, keyword_value_start
from .change import Change, Question
from .masked_reductions import DATA

_PARAMETERS = ("input", "k", "sorted")


class LargestValues(NamedTuple):
    """The k largest values of a vector, of which only sums, means and extremes are computed.

    Attributes:
        call: the call of ``top_k``.
        values: its vector, a name.
        chosen: the expression for the values of the result: the call, ``call[0]`` or ``call.values``.
        targets: the name that they are assigned to, and that of the positions; none without an assignment.
        reductions: their calls.
    """

    call: ast.Call
    values: ast.expr
    chosen: ast.expr
    targets: tuple[ast.Name, ...]
    reductions: tuple[ast.Call, ...]


def largest_values(context: Context, call: Call) -> LargestValues | None:
    """Return what becomes of the result of a call of ``top_k``; None if it is more than reductions of the values."""
    bound = bind_arguments(call.node, _PARAMETERS)
    values = bound.args.get("input")
    if bound.hidden or bound.unknown is not None or values is None or "k" not in bound.args or not _is_name(values):
        return None
    chosen, targets = _values_and_targets(context, call.node)
    if chosen is None:
        return None
    if targets:
        reads = _only_reads(context, targets)
    else:
        reads = [chosen]
    reductions = [_reduction_with_first_argument(context, read) for read in reads]
    if not reductions or None in reductions:
        return None
    return LargestValues(
        call.node, values, chosen, targets, tuple(reduction for reduction in reductions if reduction is not None)
    )


def questions_about_largest(largest: LargestValues) -> tuple[Question, ...]:
    """Return what a run must see before the values are reduced by a mask: one dimension of one size, and the type."""
    return Question(ROWS, largest.call), Question(ROWS, largest.values)


def change_to_masked_largest(context: Context, code: str, largest: LargestValues) -> Change | None:
    """Return the change that reduces all values by the mask of the k largest; None unless facts show that it may.

    Args:
        context: the file.
        code: of the rule.
        largest: what the source shows.
    """
    result = context.observed_at(code, ROWS, largest.call)
    values = context.observed_at(code, ROWS, largest.values)
    if result is None or values is None or result.only("rank") != 1 or values.only("rank") != 1:
        return None
    types = set(values.all("dtype") or ("",)) | set(result.all("dtype") or ("",))
    if not isinstance(values.only("rows"), int) or not all(str(one).startswith("float") for one in types):
        return None
    message = Message("computes with all values and the mask of the k largest, not with a dynamic k")
    mask = _new_name(context, largest)
    if mask is None:
        return None
    edits = tuple(_edits_to_mask(context, largest, mask))
    return Change(largest.call, message, edits, (DATA,), min(result.runs, values.runs))


def _is_name(node: ast.expr) -> bool:
    """Return True for a name, and for a name with a sign: they may be written twice."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Name)


def _values_and_targets(context: Context, call: ast.Call) -> tuple[ast.expr | None, tuple[ast.Name, ...]]:
    """Return the expression for the values, and the names that a statement assigns values and positions to."""
    parents = context.names.parents
    chosen: ast.expr = call
    around = parents.get(call)
    if isinstance(around, ast.Attribute) and around.attr == "values":
        chosen = around
    elif isinstance(around, ast.Subscript) and around.value is call and boxed_constant(index_of(around)) == (0,):
        chosen = around
    around = parents.get(chosen)
    if isinstance(around, ast.Assign) and len(around.targets) == 1:
        target = around.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) and chosen is call else [target]
        names = names if len(names) == (2 if chosen is call else 1) else []
        targets = tuple(name for name in names if isinstance(name, ast.Name))
        return (chosen, targets) if targets and len(targets) == len(names) else (None, ())
    return (chosen, ()) if chosen is not call and isinstance(around, ast.Call) else (None, ())


def _only_reads(context: Context, targets: tuple[ast.Name, ...]) -> list[ast.expr]:
    """Return the reads of the values; none if a name may be bound elsewhere, or the positions are read."""
    names = context.names
    scope = names.place(targets[0]).scope
    if len(scope.bindings.get(targets[0].id, ())) != 1 or any(name.id in scope.elsewhere for name in targets):
        return []
    reads = [reads_of_assigned_name(name, names) for name in targets]
    if any(mentions is None for mentions in reads) or any(mentions for mentions in reads[1:]):
        return []
    of_values = reads[0] or []
    if any(mention.names is not names or not isinstance(mention.node, ast.expr) for mention in of_values):
        return []
    return [mention.node for mention in of_values if isinstance(mention.node, ast.expr)]


def _reduction_with_first_argument(context: Context, node: ast.expr) -> ast.Call | None:
    """Return the reduction of a vector to a number whose first argument an expression is."""
    call = context.names.parents.get(node)
    if not isinstance(call, ast.Call) or call.args[:1] != [node]:
        return None
    name = context.called_names.get(call, "")
    if not name.startswith("tensorflow.") or name not in REDUCTIONS:
        return None
    bound = bind_arguments(call, REDUCTIONS[name])
    axis = bound.args.get("axis")
    is_plain = not bound.hidden and bound.unknown is None and set(bound.args) <= {*REDUCTIONS[name][:1], "axis"}
    return call if is_plain and (axis is None or boxed_constant(axis) in ((None,), (0,), (-1,))) else None


def _new_name(context: Context, largest: LargestValues) -> str | None:
    """Return a name for the mask that the file does not use; "" if it needs none."""
    if not largest.targets:
        return ""
    name = f"{largest.targets[0].id}_mask"
    is_free = not any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(context.names.tree))
    return name if is_free and name not in context.names.module.bindings else None


def _edits_to_mask(context: Context, largest: LargestValues, mask: str) -> Iterator[Edit]:
    source, call = context.source, largest.call
    bound = bind_arguments(call, _PARAMETERS)
    k, keyword = bound.args["k"], bound.keywords.get("k")
    values = source.segment(largest.values)
    start = argument_start(source, call, k) if keyword is None else keyword_value_start(source, call, keyword)
    yield Edit(source.start(largest.chosen), start, f"{values}, {DATA}.top_k_mask({values}, ")
    yield Edit(argument_end(source, call, k), source.end(largest.chosen), ")")
    if largest.targets:
        first, last = largest.targets[0], largest.targets[-1]
        yield Edit(source.end(first), source.end(last), f", {mask}")
    for reduction in largest.reductions:
        function = last_part(context.called_names[reduction]).replace("reduce_", "")
        yield edit_to_rename(source, reduction.func, f"{DATA}.masked_{function}")
        if largest.targets:
            end = argument_end(source, reduction, reduction.args[0])
            yield Edit(end, end, f", {mask}", closing=True)
