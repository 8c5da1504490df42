"""Find batches that generators, keras.utils.Sequence and numpy.array_split make, of which one may be smaller."""

from __future__ import annotations

import ast
from typing import Iterator

from ..project.context import Context
from ..semantics.model import Call
from ..semantics.module_index import ClassDefinition
from ..semantics.value_flow import origins
from ..syntax.expressions import boxed_constant, last_name
from .array_rows import integer_of, row_count_of_array
from .slices import Slice, uneven_slice_of, value_of_argument

_AROUND = ("enumerate", "tqdm", "zip")
_SEQUENCES = frozenset({"tensorflow.keras.utils.Sequence", "tensorflow.keras.utils.PyDataset"})


def slice_yielded_to_loop(context: Context, call: Call, value: ast.expr) -> Slice | None:
    """Return the slice that a generator of the file yields for the variable of a loop: ``for x, y in batches(...)``."""
    over = _iterable_of_loop_variable(context, call, value)
    return yielded_slice(context, over) if isinstance(over, ast.Call) else None


def yielded_slice(context: Context, call: ast.Call) -> Slice | None:
    """Return the slice that a generator of the file yields of which the last one may be smaller."""
    names = context.names
    function = names.definition(call.func, names.place(call))
    if function is None or function.names is not names:
        return None
    for node in ast.walk(function.node):
        if isinstance(node, ast.Yield) and node.value is not None:
            at = Call(call, names.place(node))
            for part in _tuple_elements(node.value):
                piece = uneven_slice_of(context, at, value_of_argument(context, at, part))
                if piece is not None:
                    return piece
    return None


def _tuple_elements(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the elements of tuples, and other expressions themselves."""
    for part in getattr(value, "elts", ()):
        yield from _tuple_elements(part)
    if not hasattr(value, "elts"):
        yield value


def has_uneven_parts(context: Context, call: Call, value: ast.expr) -> bool:
    """Return True if a loop takes a value from ``numpy.array_split``, whose parts may have two lengths."""
    over = _iterable_of_loop_variable(context, call, value)
    split = value_of_argument(context, call, over) if over is not None else None
    if not isinstance(split, ast.Call) or context.called_names.get(split) != "numpy.array_split" or len(split.args) < 2:
        return False
    rows, parts = row_count_of_array(context, split.args[0], call.where), integer_of(context, split.args[1], call.where)
    return not rows or not parts or rows % parts != 0


def _iterable_of_loop_variable(context: Context, call: Call, value: ast.expr) -> ast.expr | None:
    """Return what the loop iterates over whose variable a value is, without enumerate, tqdm and zip."""
    if not isinstance(value, ast.Name):
        return None
    for loop in context.names.ancestors(call.node):
        if isinstance(loop, ast.For) and any(
            isinstance(part, ast.Name) and part.id == value.id for part in ast.walk(loop.target)
        ):
            over: ast.expr = loop.iter
            while isinstance(over, ast.Call) and last_name(over.func) in _AROUND and over.args:
                over = over.args[0]
            return over
    return None


def uneven_sequence_class(context: Context, call: Call, value: ast.expr) -> ClassDefinition | None:
    """Return the class of the project of a ``keras.utils.Sequence`` whose last batch may be smaller, or None."""
    for origin in origins(value, call.where, context.names):
        if isinstance(origin.node, ast.Call):
            owner = origin.names.class_definition(origin.node.func, origin.where)
            if owner is not None and not _SEQUENCES.isdisjoint(owner.names.outside_ancestors(owner.node)):
                if _has_partial_last_batch(owner):
                    return owner
    return None


def _has_partial_last_batch(owner: ClassDefinition) -> bool:
    """Return True if ``__len__`` of a class always rounds up, and ``__getitem__`` cuts slices without a condition."""
    methods = {
        word: [held.binding.node for held in owner.names.attribute_bindings(owner.node, word)]
        for word in ("__len__", "__getitem__")
    }
    if any(len(methods_of_name) != 1 for methods_of_name in methods.values()):
        return False
    count, item = (methods_of_name[0] for methods_of_name in methods.values())
    returned = [node.value for node in _walk_or_nothing(count) if isinstance(node, ast.Return)]
    cuts = any(
        isinstance(node, ast.Slice) and node.lower and node.upper and not node.step for node in _walk_or_nothing(item)
    )
    decides = any(isinstance(node, (ast.If, ast.IfExp)) for node in _walk_or_nothing(item))
    return bool(returned) and all(map(_rounds_up, returned)) and cuts and not decides


def _walk_or_nothing(node: ast.AST | None) -> Iterator[ast.AST]:
    return iter(()) if node is None else ast.walk(node)


def _rounds_up(value: ast.AST | None) -> bool:
    """Return True for ``ceil(n / size)`` and ``n // size + 1``."""
    return any(
        isinstance(part, ast.Call)
        and last_name(part.func) == "ceil"
        or isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Add)
        and boxed_constant(part.right) == (1,)
        and isinstance(part.left, ast.BinOp)
        and isinstance(part.left.op, ast.FloorDiv)
        for part in _walk_or_nothing(value)
    )
