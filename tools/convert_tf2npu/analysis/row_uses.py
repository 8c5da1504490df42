"""Selections of rows by a mask: the types of values that follow them, and the uses that a walk notes."""

from __future__ import annotations

import ast
from typing import NamedTuple, Union

from ..project.context import Context
from ..semantics.signatures import bind_arguments

BOOLEAN_MASK = frozenset({"tensorflow.boolean_mask", "tensorflow.python.ops.array_ops.boolean_mask"})
WHERE = frozenset(
    {"tensorflow.where", "tensorflow.where_v2", "tensorflow.argwhere", "tensorflow.python.ops.array_ops.where"}
)
WHERE_PARAMETERS = ("condition", "x", "y", "name")


class Rows(NamedTuple):
    """The type of a value with one row for each selected one.

    Attributes:
        selection: the call whose result has this rank but for ``more``.
        more: the dimensions that it has more than the selection.
    """

    selection: ast.AST
    more: int


class Places(NamedTuple):
    """The type of the positions of the true elements.

    Attributes:
        is_flat: True for a vector of them.
    """

    is_flat: bool


class Foreign(NamedTuple):
    """The type of what other selections leave."""


Kind = Union[Rows, Places, Foreign, None]  # None for all other values


class Selected(NamedTuple):
    """A selection.

    Attributes:
        call: the call.
        values: what it selects from.
        is_gather: True if it takes positions, not the mask.
    """

    call: ast.Call
    values: ast.expr
    is_gather: bool


class Reduced(NamedTuple):
    """A reduction of selected rows.

    Attributes:
        call: the call.
        function: ``sum``, ``mean``, ``max`` or ``min``.
        operand: its argument.
        rows: the type of the operand.
        mask: the text of the mask at this place.
    """

    call: ast.Call
    function: str
    operand: ast.expr
    rows: Rows
    mask: str


class Counted(NamedTuple):
    """An expression for the number of rows.

    Attributes:
        node: the expression.
        mask: the text of the mask at its place.
        operand: the rows that it counts; None for positions.
        rows: their type.
    """

    node: ast.expr
    mask: str
    operand: ast.expr | None
    rows: Rows | None


class SelectedRows(NamedTuple):
    """All that becomes of the rows of a mask.

    Attributes:
        first: the call of ``boolean_mask`` or ``where`` at which it begins.
        mask: the mask.
        places: the expressions for positions that become the mask.
        selections, reductions, counts: in the order of the script.
        equal: pairs of types that must have one rank.
        at_least_two: types that must have a rank of at least 2.
        vectors: types that must have one dimension.
        flat: True if the mask must have one dimension.
    """

    first: ast.Call
    mask: ast.expr
    places: list[ast.expr]
    selections: list[Selected]
    reductions: list[Reduced]
    counts: list[Counted]
    equal: list[tuple[Rows, Rows]]
    at_least_two: list[Rows]
    vectors: list[Rows]
    flat: list[bool]

    def counted_rows(self) -> list[tuple[ast.expr, Rows]]:
        """Return the expressions whose rows are counted, and their types."""
        parts = [(count.operand, count.rows) for count in self.counts]
        return [(operand, rows) for operand, rows in parts if operand is not None and rows is not None]


class NotUnderstood(Exception):
    """The rows are used in a way that the walk does not follow."""


def mask_of(context: Context, call: ast.Call, name: str) -> ast.expr | None:
    """Return the mask of a call of ``boolean_mask``, or of ``where`` with a condition only."""
    if name in WHERE:
        bound = bind_arguments(call, WHERE_PARAMETERS)
        return None if bound.hidden or set(bound.args) != {"condition"} else bound.args["condition"]
    bound = bind_arguments(call, ("tensor", "mask", "name", "axis"))
    axis = bound.args.get("axis")
    plain = not bound.hidden and bound.unknown is None and "tensor" in bound.args and "name" not in bound.args
    return bound.args.get("mask") if plain and axis is None else None
