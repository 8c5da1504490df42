"""Follow the rows that a mask selects to the reductions in which they end.

``tf.boolean_mask(x, mask)``, or ``tf.gather_nd(x, places)`` with ``places = tf.where(mask)``, has one row for each true
element. If all that follows computes row by row until a sum, mean, maximum or minimum over the rows, the rows need not
be selected: the reduction takes the mask. The walk goes through the statements of one block in their order and gives up
at the first use that it does not understand. What it cannot see, the ranks, is left as needs that facts must meet.
"""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple, Union

from ..project.context import Context
from ..semantics.model import Call
from ..semantics.signatures import bind_arguments
from ..syntax.expressions import boxed_constant, constant_or, is_none, last_part
from .row_functions import CASTS, ELEMENTWISE, REDUCTIONS, rank_change_of_row_function, sparse_loss_arguments

BOOLEAN_MASK = frozenset({"tensorflow.boolean_mask", "tensorflow.python.ops.array_ops.boolean_mask"})
WHERE = frozenset(
    {"tensorflow.where", "tensorflow.where_v2", "tensorflow.argwhere", "tensorflow.python.ops.array_ops.where"}
)
_WHERE_PARAMETERS = ("condition", "x", "y", "name")
_MOST_MASK = 80  # characters of a mask that is written again
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Tuple, ast.Slice)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


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


class _Foreign(NamedTuple):
    """The type of what other selections leave."""


_Kind = Union[Rows, Places, _Foreign, None]  # None for all other values


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
    """An expression for the number of rows, and the text of the mask at its place."""

    node: ast.expr
    mask: str


class SelectedRows(NamedTuple):
    """All that becomes of the rows of a mask.

    Attributes:
        first: the call of ``boolean_mask`` or ``where`` at which it begins.
        mask: the mask.
        places: the expressions for positions that become the mask.
        selections, reductions, counts: in the order of the script.
        equal: pairs of types that must have one rank.
        at_least_two: types that must have a rank of at least 2.
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
    flat: list[bool]


class _NotUnderstood(Exception):
    """The rows are used in a way that the walk does not follow."""


def selected_rows(context: Context, call: ast.Call) -> SelectedRows | None:
    """Return what becomes of the rows that a call of ``boolean_mask`` or ``where`` selects; None if it is unclear."""
    return context.once(_all_selected_rows).get(call)


def mask_of(context: Context, call: ast.Call, name: str) -> ast.expr | None:
    """Return the mask of a call of ``boolean_mask``, or of ``where`` with a condition only."""
    if name in WHERE:
        bound = bind_arguments(call, _WHERE_PARAMETERS)
        return None if bound.hidden or set(bound.args) != {"condition"} else bound.args["condition"]
    bound = bind_arguments(call, ("tensor", "mask", "name", "axis"))
    axis = bound.args.get("axis")
    plain = not bound.hidden and bound.unknown is None and "tensor" in bound.args and "name" not in bound.args
    return bound.args.get("mask") if plain and axis is None else None


def _all_selected_rows(context: Context) -> dict[ast.Call, SelectedRows]:
    understood: dict[ast.Call, SelectedRows] = {}
    refused: set[tuple[ast.AST, str]] = set()
    for call in context.names.calls:
        name = context.called_names.get(call.node, "")
        if name not in BOOLEAN_MASK | WHERE or call.node in understood or call.where.statement is None:
            continue
        mask = mask_of(context, call.node, name)
        key = call.where.scope.node, ast.dump(mask) if mask is not None else ""
        if mask is None or key in refused or context.names.strings.get(call.node):
            continue
        walk = _Walk(context, call, mask)
        try:
            walk.walk()
        except (_NotUnderstood, RecursionError):
            refused.add(key)
            continue
        understood.update(dict.fromkeys(walk.members, walk.uses))
    return understood


class _Walk:
    """The walk from one selection on."""

    def __init__(self, context: Context, call: Call, mask: ast.expr) -> None:
        self._context, self._call = context, call
        self._mask, self._text = ast.dump(mask), context.source.segment(mask)
        self._mask_names = {node.id for node in ast.walk(mask) if isinstance(node, ast.Name)}
        self._is_mask_alive = True
        self._kinds: dict[str, _Kind] = {}
        self._bound_at: dict[str, tuple[int, int]] = {}
        self._visited: set[ast.AST] = set()
        self._known: dict[ast.AST, _Kind] = {}  # an expression has one place in the walk
        self._foreign = self._names_of_others()
        self.members: list[ast.Call] = []
        self.uses = SelectedRows(call.node, mask, [], [], [], [], [], [], [])

    def walk(self) -> None:
        """Follow the rows, or raise _NotUnderstood."""
        is_in_loop, blocks = self._loop_flag_and_following_blocks()
        for block in blocks:
            for statement in block:
                self._visit_statement(statement)
        uses = self.uses
        if bool(uses.selections) != bool(uses.reductions) or not uses.selections and not uses.counts:
            raise _NotUnderstood
        self._check_other_reads(is_in_loop)

    def _loop_flag_and_following_blocks(self) -> tuple[bool, list[list[ast.stmt]]]:
        """Return True if the selection is in a loop, and the statements that follow it, with its own."""
        names, node = self._context.names, self._call.where.statement
        blocks: list[list[ast.stmt]] = []
        is_in_loop, is_straight = False, True
        while node is not None and not isinstance(node, (ast.Module,) + _DEFINITIONS):
            parent = names.parents[node]
            if is_straight:
                body = next(
                    body
                    for body in (getattr(parent, field, None) for field in ("body", "orelse", "finalbody"))
                    if isinstance(body, list) and node in body
                )
                blocks.append(body[body.index(node) + bool(blocks) :])
                is_straight = isinstance(parent, ast.With)
            is_in_loop = is_in_loop or isinstance(parent, (ast.For, ast.AsyncFor, ast.While))
            if not isinstance(parent, (ast.stmt, ast.Module)):
                raise _NotUnderstood
            node = parent  # type: ignore[assignment]
        return is_in_loop, blocks

    def _names_of_others(self) -> frozenset[str]:
        """Return the names of the function that may hold what other masks select, or what is computed of it."""
        others: set[str] = set()
        assigned = [
            node
            for node in ast.walk(self._call.where.scope.node)
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None
        ]
        for _ in range(3):
            for statement in assigned:
                parts = list(ast.walk(statement.value))  # type: ignore[arg-type]
                if any(isinstance(part, ast.Name) and part.id in others for part in parts) or any(
                    isinstance(part, ast.Call) and self._selects_by_other_mask(part) for part in parts
                ):
                    others.update(_bound_names(statement))
        return frozenset(others)

    def _selects_by_other_mask(self, call: ast.Call) -> bool:
        name = self._context.called_names.get(call, "")
        if name not in BOOLEAN_MASK | WHERE:
            return False
        mask = mask_of(self._context, call, name)
        is_selection = name in BOOLEAN_MASK or mask is not None
        return is_selection and (mask is None or ast.dump(mask) != self._mask)

    def _check_other_reads(self, is_in_loop: bool) -> None:
        """Raise _NotUnderstood if what a name holds may be read where the walk has not been."""
        names = self._context.names
        scope = self._call.where.scope
        if isinstance(scope.node, ast.Module) and names.project is not None and names.path in names.project.paths:
            if names.project.direct_importers(names.path):
                raise _NotUnderstood
        for node, where in names.reads:
            if node.id not in self._bound_at or node in self._visited:
                continue
            if where.scope is scope:
                if is_in_loop or (node.lineno, node.col_offset) > self._bound_at[node.id]:
                    raise _NotUnderstood
            elif any(b.where.scope is scope for b in names.bindings_of_name(node.id, where) or []):
                raise _NotUnderstood

    def _visit_statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._visit_assignment(statement)
        elif isinstance(statement, (ast.Return, ast.Expr)):
            self._visit_unknown_use(statement.value)
        elif isinstance(statement, ast.With):
            for with_item in statement.items:
                self._visit_unknown_use(with_item.context_expr)
                self._forget_bound_names(with_item.optional_vars)
            for inner in statement.body:
                self._visit_statement(inner)
        else:
            for node in ast.walk(statement):
                if self._holds_selected_rows(node):
                    raise _NotUnderstood
            self._forget_bound_names(statement)

    def _holds_selected_rows(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return isinstance(self._kinds.get(node.id), (Rows, Places))
        return isinstance(node, ast.Call) and self._is_of_this_mask(node)

    def _is_of_this_mask(self, call: ast.Call) -> bool:
        """Return True if a call selects by the mask of this walk."""
        name = self._context.called_names.get(call, "")
        mask = mask_of(self._context, call, name) if name in BOOLEAN_MASK | WHERE else None
        return mask is not None and ast.dump(mask) == self._mask

    def _visit_assignment(self, statement: ast.stmt) -> None:
        value: ast.expr | None = getattr(statement, "value")
        targets = getattr(statement, "targets", None) or [getattr(statement, "target")]
        kind: _Kind
        if isinstance(statement, ast.AugAssign):
            target = statement.target
            held = self._kinds.get(target.id) if isinstance(target, ast.Name) else self._visit_kind(target)
            kind = self._kind_of_elementwise_result([held, self._visit_kind(statement.value)])
        elif isinstance(value, ast.Tuple) and len(targets) == 1 and isinstance(targets[0], ast.Tuple):
            kinds = [self._visit_kind(element) for element in value.elts]
            parts = targets[0].elts
            if len(parts) != len(kinds) or any(isinstance(part, ast.Starred) for part in parts):
                self._kind_of_unknown_computation(kinds)
                kinds = [None] * len(parts)
            for part, kind in zip(parts, kinds):
                self._bind(part, kind)
            return
        else:
            kind = self._visit_kind(value) if value is not None else None
        for target in targets:
            self._bind(target, kind)

    def _bind(self, target: ast.expr, kind: _Kind) -> None:
        if isinstance(kind, (Rows, Places)):
            if not isinstance(target, ast.Name) or target.id in self._call.where.scope.elsewhere:
                raise _NotUnderstood
            self._bound_at.setdefault(target.id, (target.lineno, target.col_offset))
        self._forget_bound_names(target)
        if isinstance(target, ast.Name) and kind is not None:
            self._kinds[target.id] = kind

    def _forget_bound_names(self, node: ast.AST | None) -> None:
        """Forget what the names hold that a part of the script binds."""
        for name in _bound_names(node):
            self._kinds.pop(name, None)
            self._is_mask_alive = self._is_mask_alive and name not in self._mask_names

    def _visit_unknown_use(self, node: ast.AST | None) -> None:
        if node is not None:
            self._kind_of_unknown_computation([self._visit_kind(node)])

    def _visit_kind(self, node: ast.AST) -> _Kind:
        """Return the type of an expression, and note what happens to rows in it."""
        if node not in self._known:
            self._known[node] = self._find_kind(node)
        return self._known[node]

    def _find_kind(self, node: ast.AST) -> _Kind:
        if isinstance(node, ast.Name):
            self._visited.add(node)
            if node.id in self._kinds:
                return self._kinds[node.id]
            return _Foreign() if node.id in self._foreign else None
        if isinstance(node, ast.Call):
            return self._kind_of_call(node)
        if isinstance(node, ast.Subscript):
            return self._kind_of_subscript(node)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            return self._kind_of_elementwise_result([self._visit_kind(node.left), self._visit_kind(node.right)])
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self._visit_kind(node.operand)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            if isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                return self._kind_of_elementwise_result(
                    [self._visit_kind(node.left), self._visit_kind(node.comparators[0])]
                )
        if isinstance(node, ast.Attribute):
            kind = self._visit_kind(node.value)
            if node.attr == "dtype" and isinstance(kind, Rows):
                return None
            return self._kind_of_unknown_computation([kind])
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            if any(self._holds_selected_rows(part) for part in ast.walk(node)):
                raise _NotUnderstood
            return None
        return self._kind_of_unknown_computation([self._visit_kind(part) for part in ast.iter_child_nodes(node)])

    def _kind_of_unknown_computation(self, kinds: list[_Kind]) -> _Kind:
        """Return the type of what is computed in an unknown way. Rows may not be."""
        if any(isinstance(kind, (Rows, Places)) for kind in kinds):
            raise _NotUnderstood
        return next((kind for kind in kinds if isinstance(kind, _Foreign)), None)

    def _kind_of_elementwise_result(self, kinds: list[_Kind]) -> _Kind:
        """Return the type of what is computed element by element."""
        rows = [kind for kind in kinds if isinstance(kind, Rows)]
        others = [kind for kind in kinds if isinstance(kind, (_Foreign, Places))]
        if any(isinstance(kind, Places) for kind in others) or rows and others:
            raise _NotUnderstood
        self.uses.equal.extend((rows[0], other) for other in rows[1:] if other != rows[0])
        return rows[0] if rows else others[0] if others else None

    def _kind_of_subscript(self, node: ast.Subscript) -> _Kind:
        indices = _indices(node)
        if (
            isinstance(node.value, ast.Call)
            and _is_constant(indices, 0)
            and self._is_number_of_rows(node.value, node, "shape")
        ):
            return None
        kind = self._visit_kind(node.value)
        if isinstance(kind, Places):
            if len(indices) != 2 or not _is_full_slice(indices[0]) or boxed_constant(indices[1]) != (0,):
                raise _NotUnderstood
            self.uses.flat.append(True)
            self._note_mask_replacement(node, node.value)
            return Places(True)
        if isinstance(kind, Rows):
            return self._kind_of_columns(kind, indices)
        for index in indices:
            self._visit_unknown_use(index)
        return kind

    def _kind_of_columns(self, rows: Rows, indices: list[ast.AST]) -> Rows:
        """Return the type of ``rows[:, i]``, ``rows[..., i]`` and the like."""
        more = rows.more
        for index in indices[1:]:
            if (
                boxed_constant(index) is not None
                and is_none(index)
                or last_part(self._resolved_name(index)) == "newaxis"
            ):
                more += 1
            elif isinstance(index, ast.Slice):
                self._visit_unknown_use(index)
            elif isinstance(constant_or(index, None), int):
                more -= 1
            else:
                raise _NotUnderstood
        is_ellipsis = boxed_constant(indices[0]) == (Ellipsis,) or type(indices[0]).__name__ == "Ellipsis"
        if not is_ellipsis:
            if not _is_full_slice(indices[0]):
                raise _NotUnderstood
            self.uses.flat.append(True)
        if len(indices) > 2:
            raise _NotUnderstood
        if is_ellipsis and len(indices) == 2 and more <= rows.more:
            self.uses.at_least_two.append(rows)
        return Rows(rows.selection, more)

    def _resolved_name(self, node: ast.AST) -> str:
        return (
            self._context.resolve(node, self._call.where) or "" if isinstance(node, (ast.Name, ast.Attribute)) else ""
        )

    def _is_number_of_rows(self, call: ast.Call, node: ast.expr, function: str) -> bool:
        """Return True if an expression is the number of rows: ``tf.shape(rows)[0]`` or ``tf.size(rows)``."""
        name = self._context.called_names.get(call, "")
        if last_part(name) != function or not name.startswith("tensorflow.") or len(call.args) != 1 or call.keywords:
            return False
        kind = self._visit_kind(call.args[0])
        if isinstance(kind, Places) and not kind.is_flat and function == "size":
            raise _NotUnderstood
        if not isinstance(kind, (Rows, Places)):
            return False
        if isinstance(kind, Rows):
            raise _NotUnderstood  # its rows stay in the shape
        self.uses.counts.append(Counted(node, self._mask_text()))
        return True

    def _kind_of_call(self, call: ast.Call) -> _Kind:
        name = self._context.called_names.get(call, "")
        if name in BOOLEAN_MASK or name in WHERE and mask_of(self._context, call, name) is not None:
            return self._kind_of_selection(call, name)
        if self._is_number_of_rows(call, call, "size"):
            return None
        kind = self._kind_of_places(call, name)
        if kind is not None:
            return kind
        self._visit_function(call.func)
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        kinds = [self._visit_kind(argument) for argument in arguments]
        if not name.startswith("tensorflow.") or not any(isinstance(kind, (Rows, Places)) for kind in kinds):
            return self._kind_of_unknown_computation(kinds)
        if name in REDUCTIONS:
            return self._add_reduction(call, name, kinds)
        if name in CASTS:
            return self._kind_of_elementwise_result(kinds[:1])
        if name in ELEMENTWISE:
            return self._kind_of_elementwise_result(kinds)
        arguments_of_loss = sparse_loss_arguments(name, call)
        if arguments_of_loss is not None:
            return self._kind_of_sparse_loss(*map(self._visit_kind, arguments_of_loss))
        change = rank_change_of_row_function(name, call)
        rows = self._kind_of_elementwise_result(kinds)
        if change is None or not isinstance(rows, Rows):
            raise _NotUnderstood
        self.uses.at_least_two.append(rows)
        return Rows(rows.selection, rows.more + change)

    def _kind_of_sparse_loss(self, labels: _Kind, logits: _Kind) -> Rows:
        if not isinstance(labels, Rows) or not isinstance(logits, Rows):
            raise _NotUnderstood
        self.uses.equal.append((Rows(labels.selection, labels.more + 1), logits))
        return labels

    def _visit_function(self, function: ast.expr) -> None:
        """Look at the expression that is called; a method of rows is not understood."""
        if not (isinstance(function, ast.Attribute) and self._resolved_name(function)):
            self._visit_unknown_use(function)

    def _kind_of_selection(self, call: ast.Call, name: str) -> _Kind:
        mask = mask_of(self._context, call, name)
        if mask is None or ast.dump(mask) != self._mask:
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                self._visit_unknown_use(argument)
            return _Foreign()
        if not self._is_mask_alive:
            raise _NotUnderstood
        self._visit_unknown_use(mask)
        self.members.append(call)
        if name in WHERE:
            self.uses.places.append(call)
            return Places(False)
        values = bind_arguments(call, ("tensor", "mask")).args["tensor"]
        return self._add_selection(call, values, False)

    def _add_selection(self, call: ast.Call, values: ast.expr, is_gather: bool) -> Rows:
        kind = self._visit_kind(values)
        if kind is not None:
            raise _NotUnderstood
        self.uses.selections.append(Selected(call, values, is_gather))
        return Rows(call, 0)

    def _kind_of_places(self, call: ast.Call, name: str) -> _Kind:
        """Return the type of what is made of positions: a vector of them, or rows at them."""
        short = last_part(name)
        if short not in ("gather", "gather_nd", "squeeze", "reshape", "to_int32", "cast") or len(call.args) < 1:
            return None
        if short in ("gather", "gather_nd"):
            if len(call.args) != 2 or call.keywords:
                return None
            index = self._visit_kind(call.args[1])
            if not isinstance(index, Places) or not name.startswith("tensorflow."):
                self._kind_of_unknown_computation([index])
                return None
            if index.is_flat != (short == "gather"):
                raise _NotUnderstood
            return self._add_selection(call, call.args[0], True)
        kind = self._visit_kind(call.args[0])
        if not isinstance(kind, Places):
            return None
        if short in ("to_int32", "cast"):
            self._note_mask_replacement(call, call.args[0])
            return kind
        shape = call.args[1] if len(call.args) == 2 else call.keywords[0].value if call.keywords else None
        value = (
            [boxed_constant(e) for e in shape.elts]
            if isinstance(shape, (ast.List, ast.Tuple))
            else [boxed_constant(shape)]
        )
        if len(call.args) + len(call.keywords) != 2 or value not in ([(-1,)], [(1,)]):
            raise _NotUnderstood
        if (value == [(-1,)] and isinstance(shape, ast.UnaryOp)) or (short == "reshape") != (value == [(-1,)]):
            raise _NotUnderstood
        self.uses.flat.append(True)
        self._note_mask_replacement(call, call.args[0])
        return Places(True)

    def _note_mask_replacement(self, whole: ast.expr, part: ast.expr) -> None:
        """Note that an expression around positions becomes the mask instead."""
        if part in self.uses.places:
            self.uses.places[self.uses.places.index(part)] = whole
        elif isinstance(part, ast.Name):
            self.uses.places.append(whole)
        else:
            raise _NotUnderstood

    def _add_reduction(self, call: ast.Call, name: str, kinds: list[_Kind]) -> _Kind:
        bound = bind_arguments(call, REDUCTIONS[name])
        operand = next(iter(bound.args.values()), None)
        allowed = {*REDUCTIONS[name][:2], "keepdims"}
        if bound.hidden or bound.unknown or not set(bound.args) <= allowed or operand is None:
            raise _NotUnderstood
        if not isinstance(kinds[0], Rows) or any(isinstance(kind, (Rows, Places)) for kind in kinds[1:]):
            raise _NotUnderstood
        axis = boxed_constant(bound.args.get("axis"))
        if bound.args.get("axis") is not None and axis not in ((None,), (0,), (-1,)) or operand not in call.args[:1]:
            raise _NotUnderstood
        if axis == (-1,):
            if "keepdims" in bound.args:
                raise _NotUnderstood
            self.uses.at_least_two.append(kinds[0])
            return Rows(kinds[0].selection, kinds[0].more - 1)
        function = last_part(name).replace("reduce_", "")
        self.uses.reductions.append(Reduced(call, function, operand, kinds[0], self._mask_text()))
        return None

    def _mask_text(self) -> str:
        """Return the text for the mask at the place of the walk."""
        name = next((name for name, kind in self._kinds.items() if isinstance(kind, Places)), None)
        if name is not None:
            return name
        if not self._is_mask_alive or len(self._text) > _MOST_MASK or "\n" in self._text:
            raise _NotUnderstood
        if not all(self._has_no_side_effects(part) for part in ast.walk(self.uses.mask)):
            raise _NotUnderstood
        is_name = isinstance(self.uses.mask, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Compare))
        return self._text if is_name else f"({self._text})"

    def _has_no_side_effects(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return self._context.called_names.get(node, "") in ELEMENTWISE | CASTS
        kinds = (
            ast.expr_context,
            ast.operator,
            ast.unaryop,
            ast.cmpop,
            ast.slice,
            ast.Name,
            ast.Attribute,
            ast.keyword,
        )
        return isinstance(node, kinds + _OPERATORS) or boxed_constant(node) is not None


def _bound_names(node: ast.AST | None) -> Iterator[str]:
    """Yield the names that a part of a script binds."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, _DEFINITIONS):
            yield part.name


def _indices(node: ast.Subscript) -> list[ast.AST]:
    """Return the indices of a subscript; Python 3.8 and before wrap them."""
    index: ast.AST = node.slice
    if type(index).__name__ == "ExtSlice":
        return [getattr(part, "value", part) for part in getattr(index, "dims")]
    index = getattr(index, "value", index) if type(index).__name__ == "Index" else index
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _is_constant(indices: list[ast.AST], value: int) -> bool:
    return len(indices) == 1 and boxed_constant(indices[0]) == (value,)


def _is_full_slice(index: ast.AST) -> bool:
    """Return True for ``:``."""
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None
