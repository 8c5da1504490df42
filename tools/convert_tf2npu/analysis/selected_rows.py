"""Follow the rows that a mask selects to the reductions in which they end.

``tf.boolean_mask(x, mask)``, or ``tf.gather_nd(x, places)`` with ``places = tf.where(mask)``, has one row for each true
element. If all that follows computes row by row until a sum, mean, maximum or minimum over the rows, the rows need not
be selected: the reduction takes the mask. The walk goes through the statements of one block in their order and gives up
at the first use that it does not understand. What it cannot see, the ranks, is left as needs that facts must meet.
"""

from __future__ import annotations

import ast
from typing import Iterator

from ..project.context import Context
from ..semantics.model import Call
from .row_kinds import RowKinds
from .row_uses import BOOLEAN_MASK, WHERE, Kind, NotUnderstood, Places, Rows, SelectedRows, mask_of

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def selected_rows(context: Context, call: ast.Call) -> SelectedRows | None:
    """Return what becomes of the rows that a call of ``boolean_mask`` or ``where`` selects; None if it is unclear."""
    return context.once(_all_selected_rows).get(call)


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
        except (NotUnderstood, RecursionError):
            refused.add(key)
            continue
        understood.update(dict.fromkeys(walk.members, walk.uses))
    return understood


class _Walk(RowKinds):
    """The walk through the statements from one selection on."""

    def __init__(self, context: Context, call: Call, mask: ast.expr) -> None:
        super().__init__(context, call, mask)
        self._mask_names = {node.id for node in ast.walk(mask) if isinstance(node, ast.Name)}
        self._bound_at: dict[str, tuple[int, int]] = {}
        self._foreign = self._names_of_others()

    def walk(self) -> None:
        """Follow the rows, or raise NotUnderstood."""
        is_in_loop, blocks = self._loop_flag_and_following_blocks()
        for block in blocks:
            for statement in block:
                self._visit_statement(statement)
        uses = self.uses
        if bool(uses.selections) != bool(uses.reductions) or not uses.selections and not uses.counts:
            raise NotUnderstood
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
                raise NotUnderstood
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
        """Raise NotUnderstood if what a name holds may be read where the walk has not been."""
        names = self._context.names
        scope = self._call.where.scope
        if isinstance(scope.node, ast.Module) and names.project is not None and names.path in names.project.paths:
            if names.project.direct_importers(names.path):
                raise NotUnderstood
        for node, where in names.reads:
            if node.id not in self._bound_at or node in self._visited:
                continue
            if where.scope is scope:
                if is_in_loop or (node.lineno, node.col_offset) > self._bound_at[node.id]:
                    raise NotUnderstood
            elif any(b.where.scope is scope for b in names.bindings_of_name(node.id, where) or []):
                raise NotUnderstood

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
                    raise NotUnderstood
            self._forget_bound_names(statement)

    def _visit_assignment(self, statement: ast.stmt) -> None:
        value: ast.expr | None = getattr(statement, "value")
        targets = getattr(statement, "targets", None) or [getattr(statement, "target")]
        kind: Kind
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

    def _bind(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(kind, (Rows, Places)):
            if not isinstance(target, ast.Name) or target.id in self._call.where.scope.elsewhere:
                raise NotUnderstood
            self._bound_at.setdefault(target.id, (target.lineno, target.col_offset))
        self._forget_bound_names(target)
        if isinstance(target, ast.Name) and kind is not None:
            self._kinds[target.id] = kind

    def _forget_bound_names(self, node: ast.AST | None) -> None:
        """Forget what the names hold that a part of the script binds."""
        for name in _bound_names(node):
            self._kinds.pop(name, None)
            self._is_mask_alive = self._is_mask_alive and name not in self._mask_names


def _bound_names(node: ast.AST | None) -> Iterator[str]:
    """Yield the names that a part of a script binds."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, _DEFINITIONS):
            yield part.name
