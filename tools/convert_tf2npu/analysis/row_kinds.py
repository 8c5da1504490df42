"""The types of expressions that are computed from the rows which a mask selects: which functions rows may pass.

A reduction of rows is noted with the text of the mask at its place. What the types leave open, the ranks, is noted as
needs that facts must meet.
"""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Call
from ..semantics.signatures import bind_arguments
from ..syntax.expressions import boxed_constant, constant_or, indices_of, is_none, last_part
from .row_functions import CASTS, ELEMENTWISE, REDUCTIONS, rank_change_of_row_function, sparse_loss_arguments
from .row_uses import (
    BOOLEAN_MASK,
    WHERE,
    Counted,
    Foreign,
    Kind,
    NotUnderstood,
    Places,
    Reduced,
    Rows,
    Selected,
    SelectedRows,
    mask_of,
)

_MOST_MASK = 80  # characters of a mask that is written again
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Tuple, ast.Slice)


class RowKinds:
    """The types of the expressions that follow one selection, in the order in which they are computed.

    Args:
        context: the file.
        call: the selection.
        mask: its mask.
    """

    def __init__(self, context: Context, call: Call, mask: ast.expr) -> None:
        self._context, self._call = context, call
        self._mask, self._text = ast.dump(mask), context.source.segment(mask)
        self._is_mask_alive = True
        self._kinds: dict[str, Kind] = {}
        self._visited: set[ast.AST] = set()
        self._known: dict[ast.AST, Kind] = {}  # an expression has one place in the walk
        self._foreign: frozenset[str] = frozenset()  # the names that may hold what other masks select
        self.members: list[ast.Call] = []
        self.uses = SelectedRows(call.node, mask, [], [], [], [], [], [], [], [])

    def _holds_selected_rows(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return isinstance(self._kinds.get(node.id), (Rows, Places))
        return isinstance(node, ast.Call) and self._is_of_this_mask(node)

    def _is_of_this_mask(self, call: ast.Call) -> bool:
        """Return True if a call selects by the mask of this walk."""
        name = self._context.called_names.get(call, "")
        mask = mask_of(self._context, call, name) if name in BOOLEAN_MASK | WHERE else None
        return mask is not None and ast.dump(mask) == self._mask

    def _visit_unknown_use(self, node: ast.AST | None) -> None:
        if node is not None:
            self._kind_of_unknown_computation([self._visit_kind(node)])

    def _visit_kind(self, node: ast.AST) -> Kind:
        """Return the type of an expression, and note what happens to rows in it."""
        if node not in self._known:
            self._known[node] = self._find_kind(node)
        return self._known[node]

    def _find_kind(self, node: ast.AST) -> Kind:
        if isinstance(node, ast.Name):
            self._visited.add(node)
            if node.id in self._kinds:
                return self._kinds[node.id]
            return Foreign() if node.id in self._foreign else None
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
                raise NotUnderstood
            return None
        return self._kind_of_unknown_computation([self._visit_kind(part) for part in ast.iter_child_nodes(node)])

    def _kind_of_unknown_computation(self, kinds: list[Kind]) -> Kind:
        """Return the type of what is computed in an unknown way. Rows may not be."""
        if any(isinstance(kind, (Rows, Places)) for kind in kinds):
            raise NotUnderstood
        return next((kind for kind in kinds if isinstance(kind, Foreign)), None)

    def _kind_of_elementwise_result(self, kinds: list[Kind]) -> Kind:
        """Return the type of what is computed element by element."""
        rows = [kind for kind in kinds if isinstance(kind, Rows)]
        others = [kind for kind in kinds if isinstance(kind, (Foreign, Places))]
        if any(isinstance(kind, Places) for kind in others) or rows and others:
            raise NotUnderstood
        self.uses.equal.extend((rows[0], other) for other in rows[1:] if other != rows[0])
        return rows[0] if rows else others[0] if others else None

    def _kind_of_subscript(self, node: ast.Subscript) -> Kind:
        indices = indices_of(node)
        is_first = list(map(boxed_constant, indices)) == [(0,)]
        if isinstance(node.value, ast.Call) and is_first and self._is_number_of_rows(node.value, node, "shape"):
            return None
        if list(map(boxed_constant, indices)) == [(-1,)] and self._is_shape_of_rows(node.value):
            return None
        kind = self._visit_kind(node.value)
        if isinstance(kind, Places):
            if len(indices) != 2 or not _is_full_slice(indices[0]) or boxed_constant(indices[1]) != (0,):
                raise NotUnderstood
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
            if is_none(index) or last_part(self._resolved_name(index)) == "newaxis":
                more += 1
            elif isinstance(index, ast.Slice):
                self._visit_unknown_use(index)
            elif isinstance(constant_or(index, None), int):
                more -= 1
            else:
                raise NotUnderstood
        is_ellipsis = boxed_constant(indices[0]) == (Ellipsis,) or type(indices[0]).__name__ == "Ellipsis"
        if not is_ellipsis:
            if not _is_full_slice(indices[0]):
                raise NotUnderstood
            self.uses.flat.append(True)
        if len(indices) > 2:
            raise NotUnderstood
        if is_ellipsis and len(indices) == 2 and more <= rows.more:
            self.uses.at_least_two.append(rows)
        return Rows(rows.selection, more)

    def _resolved_name(self, node: ast.AST) -> str:
        return (
            self._context.resolve(node, self._call.where) or "" if isinstance(node, (ast.Name, ast.Attribute)) else ""
        )

    def _is_shape_of_rows(self, node: ast.expr) -> bool:
        """Return True for the shape of rows, of which all rows have the last dimension."""
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            rows = self._visit_kind(node.value)
        elif isinstance(node, ast.Call) and self._is_call_of_one_argument(node, "shape"):
            rows = self._visit_kind(node.args[0])
        else:
            return False
        if isinstance(rows, Rows):
            self.uses.at_least_two.append(rows)
        return isinstance(rows, Rows)

    def _is_call_of_one_argument(self, call: ast.Call, function: str) -> bool:
        name = self._context.called_names.get(call, "")
        is_function = last_part(name) == function and name.startswith("tensorflow.")
        return is_function and len(call.args) == 1 and not call.keywords

    def _is_number_of_rows(self, call: ast.Call, node: ast.expr, function: str) -> bool:
        """Return True if an expression is the number of rows: ``tf.shape(rows)[0]`` or ``tf.size(rows)``."""
        if not self._is_call_of_one_argument(call, function):
            return False
        kind = self._visit_kind(call.args[0])
        if isinstance(kind, Places) and not kind.is_flat and function == "size":
            raise NotUnderstood
        if not isinstance(kind, (Rows, Places)):
            return False
        if isinstance(kind, Rows):
            if not isinstance(call.args[0], ast.Name):
                raise NotUnderstood  # the selection in it is rewritten, too
            if function == "size":
                self.uses.vectors.append(kind)
        rows = (call.args[0], kind) if isinstance(kind, Rows) else (None, None)
        self.uses.counts.append(Counted(node, self._mask_text(), *rows))
        return True

    def _kind_of_call(self, call: ast.Call) -> Kind:
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
            raise NotUnderstood
        if change > 0:
            if kinds[0] is not rows or any(isinstance(kind, Rows) for kind in kinds[1:]):
                raise NotUnderstood
        else:
            self.uses.at_least_two.append(rows)
        return Rows(rows.selection, rows.more + change)

    def _kind_of_sparse_loss(self, labels: Kind, logits: Kind) -> Rows:
        if not isinstance(labels, Rows) or not isinstance(logits, Rows):
            raise NotUnderstood
        self.uses.equal.append((Rows(labels.selection, labels.more + 1), logits))
        return labels

    def _visit_function(self, function: ast.expr) -> None:
        """Look at the expression that is called; a method of rows is not understood."""
        if not (isinstance(function, ast.Attribute) and self._resolved_name(function)):
            self._visit_unknown_use(function)

    def _kind_of_selection(self, call: ast.Call, name: str) -> Kind:
        mask = mask_of(self._context, call, name)
        if mask is None or ast.dump(mask) != self._mask:
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                self._visit_unknown_use(argument)
            return Foreign()
        if not self._is_mask_alive:
            raise NotUnderstood
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
            raise NotUnderstood
        self.uses.selections.append(Selected(call, values, is_gather))
        return Rows(call, 0)

    def _kind_of_places(self, call: ast.Call, name: str) -> Kind:
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
                raise NotUnderstood
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
            raise NotUnderstood
        if (value == [(-1,)] and isinstance(shape, ast.UnaryOp)) or (short == "reshape") != (value == [(-1,)]):
            raise NotUnderstood
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
            raise NotUnderstood

    def _add_reduction(self, call: ast.Call, name: str, kinds: list[Kind]) -> Kind:
        bound = bind_arguments(call, REDUCTIONS[name])
        operand = next(iter(bound.args.values()), None)
        allowed = {*REDUCTIONS[name][:2], "keepdims"}
        if bound.hidden or bound.unknown or not set(bound.args) <= allowed or operand is None:
            raise NotUnderstood
        if not isinstance(kinds[0], Rows) or any(isinstance(kind, (Rows, Places)) for kind in kinds[1:]):
            raise NotUnderstood
        axis = boxed_constant(bound.args.get("axis"))
        if bound.args.get("axis") is not None and axis not in ((None,), (0,), (-1,)) or operand not in call.args[:1]:
            raise NotUnderstood
        if axis == (-1,):
            if "keepdims" in bound.args:
                raise NotUnderstood
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
            raise NotUnderstood
        if not all(self._has_no_side_effects(part) for part in ast.walk(self.uses.mask)):
            raise NotUnderstood
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


def _is_full_slice(index: ast.AST) -> bool:
    """Return True for ``:``."""
    return isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None
