"""Find the slices of an array that a loop cuts, of which the last one may be smaller: ``x[i:i + 64]``."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..project.context import Context
from ..semantics.model import Call
from ..syntax.expressions import boxed_constant, indices_of, last_name
from ..syntax.source import one_line

_RANGES = ("range", "xrange", "trange", "arange")
# Functions whose first argument, or ``shape``, is the shape of their result.
_SHAPED = frozenset(
    f"{home}.{name}"
    for home, names in {
        "numpy": "empty full ones zeros random.normal random.uniform",
        "tensorflow": "fill ones zeros random.normal random.truncated_normal random.uniform",
    }.items()
    for name in names.split()
)


class Slice(NamedTuple):
    """A slice of an array: the array, the size of a slice, and the range, min or loop whose last slice is smaller."""

    whole: ast.expr
    size: ast.expr
    by: ast.Call | ast.While


def is_growing_slice(context: Context, value: ast.expr) -> bool:
    """Return True if a value is a slice with another length in each iteration of a loop: ``x[:i]``, ``x[i:]``."""
    indices = indices_of(value) if isinstance(value, ast.Subscript) else []
    slices = [part for part in indices if isinstance(part, ast.Slice) and part.step is None]
    bounds = {getattr(part.upper or part.lower, "id", "") for part in slices if not (part.upper and part.lower)}
    return _is_counter(context, value, bounds)


def has_changing_shape_in_loop(context: Context, value: ast.expr) -> bool:
    """Return True for a tensor or array with another shape in each iteration of a loop: ``tf.zeros([i, 3])``."""
    if not isinstance(value, ast.Call) or context.called_names.get(value, "") not in _SHAPED:
        return False
    shapes = [keyword.value for keyword in value.keywords if keyword.arg in ("shape", "dims")] or value.args[:1]
    sizes = getattr(shapes[0], "elts", shapes) if shapes else []
    return _is_counter(context, value, {part.id for size in sizes for part in _variables_in_size(size)})


def _variables_in_size(size: ast.AST) -> list[ast.Name]:
    """Return the variables that a size is, or is a sum or product of."""
    if isinstance(size, ast.BinOp) and isinstance(size.op, (ast.Add, ast.Sub, ast.Mult)):
        return _variables_in_size(size.left) + _variables_in_size(size.right)
    return [size] if isinstance(size, ast.Name) else []


def _is_counter(context: Context, value: ast.expr, words: set[str]) -> bool:
    """Return True if one of some names counts a loop over a range around an expression."""
    return any(
        isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Name)
        and loop.target.id in words
        and not _is_tested_by_loop(context, value, {loop.target.id})
        and isinstance(loop.iter, ast.Call)
        and last_name(loop.iter.func) in _RANGES
        for loop in context.names.ancestors(value)
    )


def value_of_argument(context: Context, call: Call, value: ast.expr) -> ast.expr:
    """Return the expression that an argument names, or the argument."""
    binding = context.names.only_binding(value, call.where, "value")
    return binding.node if binding is not None and isinstance(binding.node, ast.expr) else value


def advice_for_full_range(context: Context, piece: Slice) -> str:
    """Return the advice that drops the last partial batch: another range, or an earlier end of the loop."""
    if not isinstance(piece.by, ast.Call) or len(piece.by.args) != 3:
        return "end the loop before it"
    size, stop = one_line_text(context, piece.size), piece.by.args[1]
    plain = isinstance(stop, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) or boxed_constant(stop) is not None
    end = one_line_text(context, stop) if plain else f"({one_line_text(context, stop)})"
    return f"range({one_line_text(context, piece.by.args[0])}, {end} - {size} + 1, {size})"


def uneven_slice_of(context: Context, call: Call, value: ast.expr) -> Slice | None:
    """Return the slice in a fed value, or None if its last slice is not known to be smaller."""
    if not isinstance(value, ast.Subscript):
        return None
    part = indices_of(value)[0]
    if isinstance(part, ast.Name):
        rows = _assigned_value(context, call, part)  # x[rows] with rows = order[i:i + 64]
        piece = uneven_slice_of(context, call, rows) if isinstance(rows, ast.Subscript) else None
        return piece and piece._replace(whole=value.value)
    if isinstance(part, ast.Slice) and part.step is None and isinstance(part.lower, ast.BinOp):
        return _slice_by_batch_number(context, call, value, part)
    if not isinstance(part, ast.Slice) or not isinstance(part.lower, ast.Name) or part.step is not None:
        return None
    if _is_tested_by_loop(context, value, {part.lower.id, getattr(part.upper, "id", part.lower.id)}):
        return None
    upper = _assigned_value(context, call, part.upper)
    if isinstance(upper, ast.Call) and getattr(upper.func, "id", "") == "min" and len(upper.args) == 2:
        for argument in upper.args:
            size = _other_summand(argument, part.lower.id)
            if size is not None:
                return Slice(value.value, size, upper)
    size = _other_summand(upper, part.lower.id)
    counting = _while_loop_counting(context, value, part.lower.id, size) if size is not None else None
    if size is not None and counting is not None:
        return Slice(value.value, size, counting)
    ranged = _three_argument_range(context, value, part.lower.id) if size is not None else None
    if (
        size is None
        or ranged is None
        or ast.dump(ranged.args[2]) != ast.dump(size)
        or _has_equal_slices(context, call, ranged)
    ):
        return None
    return Slice(value.value, size, ranged)


def _slice_by_batch_number(context: Context, call: Call, value: ast.Subscript, part: ast.Slice) -> Slice | None:
    """Return the slice of ``x[i * size:(i + 1) * size]`` in a loop over a range whose end is rounded up."""
    lower, upper = part.lower, _assigned_value(context, call, part.upper)
    if not isinstance(lower, ast.BinOp) or not isinstance(upper, ast.BinOp) or not isinstance(lower.op, ast.Mult):
        return None
    for number, size in ((lower.left, lower.right), (lower.right, lower.left)):
        loop = _range_call_of_loop(context, value, number.id) if isinstance(number, ast.Name) else None
        sides = {ast.dump(upper.left): upper.right, ast.dump(upper.right): upper.left}
        other = sides.get(ast.dump(size))
        ends = isinstance(upper.op, ast.Mult) or other is not None and ast.dump(other) == ast.dump(lower)
        if loop is None or len(loop.args) != 1 or not isinstance(number, ast.Name) or other is None or not ends:
            continue
        if _is_rounded_up(context, call, loop.args[0]) and not _is_tested_by_loop(context, value, {number.id}):
            return Slice(value.value, size, loop)
    return None


def _is_rounded_up(context: Context, call: Call, node: ast.AST) -> bool:
    """Return True for a number of batches with the partial one: ``ceil(n / size)``, ``n // size + 1``."""
    count = _assigned_value(context, call, node)
    if isinstance(count, ast.BinOp) and isinstance(count.op, ast.Add):
        for one, other in ((count.left, count.right), (count.right, count.left)):
            full = _assigned_value(context, call, other)
            divides = isinstance(full, ast.BinOp) and isinstance(full.op, ast.FloorDiv)
            if boxed_constant(one) == (1,) and (
                divides or isinstance(full, ast.Call) and last_name(full.func) == "int"
            ):
                return True
        return False
    return count is not None and any(
        isinstance(part, ast.Call) and last_name(part.func) == "ceil" for part in ast.walk(count)
    )


def _while_loop_counting(context: Context, node: ast.AST, name: str, size: ast.expr) -> ast.While | None:
    """Return the loop of ``while i < n:`` around a node that adds the size to the name."""
    loop = next((p for p in context.names.ancestors(node) if isinstance(p, (ast.For, ast.While))), None)
    if (
        not isinstance(loop, ast.While)
        or not isinstance(loop.test, ast.Compare)
        or not isinstance(loop.test.ops[0], ast.Lt)
    ):
        return None
    if getattr(loop.test.left, "id", "") != name or not isinstance(loop.test.comparators[0], (ast.Call, ast.Name)):
        return None
    adds = any(
        isinstance(statement, ast.AugAssign)
        and getattr(statement.target, "id", "") == name
        and isinstance(statement.op, ast.Add)
        and ast.dump(statement.value) == ast.dump(size)
        for statement in loop.body
    )
    return loop if adds else None


def _assigned_value(context: Context, call: Call, node: ast.AST | None) -> ast.AST | None:
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, call.where) or []
        return (
            bindings[-1].node
            if bindings
            and all(b.kind == "value" for b in bindings)
            and len({ast.dump(b.node) for b in bindings if b.node is not None}) == 1
            else None
        )
    return node


def _other_summand(node: ast.AST | None, start: str) -> ast.expr | None:
    """Return the summand of a name: ``size`` in ``start + size``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, ast.Name) and one.id == start:
                return other
    return None


def _three_argument_range(context: Context, node: ast.AST, name: str) -> ast.Call | None:
    """Return the ``range(start, stop, step)`` of the loop around a node that binds a name."""
    loop = _range_call_of_loop(context, node, name)
    return loop if loop is not None and len(loop.args) == 3 else None


def _range_call_of_loop(context: Context, node: ast.AST, name: str) -> ast.Call | None:
    """Return the call of range in the loop around a node that binds a name."""
    for parent in context.names.ancestors(node):
        loops: list[tuple[ast.AST, ast.AST]] = (
            [(parent.target, parent.iter)]
            if isinstance(parent, ast.For)
            else [(g.target, g.iter) for g in getattr(parent, "generators", ())]
        )
        for target, over in loops:
            if isinstance(target, ast.Name) and target.id == name:
                return over if isinstance(over, ast.Call) and last_name(over.func) in _RANGES else None
    return None


def _is_tested_by_loop(context: Context, node: ast.AST, names: set[str]) -> bool:
    """Return True if the loop around a node tests one of the names."""
    loop = next((p for p in context.names.ancestors(node) if isinstance(p, (ast.For, ast.While))), None)
    return any(
        isinstance(n, ast.Name) and n.id in names
        for statement in getattr(loop, "body", ())
        for part in ast.walk(statement)
        if isinstance(part, (ast.If, ast.IfExp, ast.Assert))
        for n in ast.walk(part.test)
    )


def _has_equal_slices(context: Context, call: Call, ranged: ast.Call) -> bool:
    """Return True if all slices of a range have one size, or if its end is computed so that they may."""
    numbers = [boxed_constant(argument) for argument in ranged.args]
    if None not in numbers:
        start, stop, step = [number[0] for number in numbers if number]
        return not step or (stop - start) % step == 0
    stop = _assigned_value(context, call, ranged.args[1])
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Sub, ast.FloorDiv, ast.Mod, ast.Mult))
        for part in (ast.walk(stop) if stop is not None else ())
    )


def one_line_text(context: Context, node: ast.AST) -> str:
    return one_line(context.source.segment(node))
