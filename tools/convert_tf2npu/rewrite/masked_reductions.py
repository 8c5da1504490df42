"""The edits that hand the mask of selected rows to the reductions of the rows."""

from __future__ import annotations

import ast
from typing import Iterator

from ..analysis.row_uses import WHERE, Rows, Selected, SelectedRows
from ..facts.kinds import ROWS
from ..facts.seen import Seen
from ..files.message import Message
from ..project.context import Context
from ..semantics.signatures import bind_arguments
from ..syntax.source import Edit
from .call_edits import (
    argument_end,
    argument_start,
    edit_to_rename,
    is_one_statement,
    keyword_value_start,
    rename_keyword,
)
from .change import Change, Question

DATA = "npu_data"
_FLOATS = {"float16", "bfloat16", "float32", "float64"}


def questions_about_mask(rows: SelectedRows) -> tuple[Question, ...]:
    """Return what a run must see before the rows of a mask may stay: ranks, and that no shape hides them."""
    nodes = [rows.mask, *(selected.call for selected in rows.selections), *(part.operand for part in rows.reductions)]
    nodes += [selected.values for selected in rows.selections if selected.is_gather]
    nodes += [operand for operand, _ in rows.counted_rows()]
    return tuple(Question(ROWS, node) for node in dict.fromkeys(nodes))


def change_to_masked_reductions(context: Context, code: str, rows: SelectedRows) -> Change | None:
    """Return the change that reduces all rows by their mask; None unless facts show that it computes the same.

    Args:
        context: the file.
        code: of the rule.
        rows: what the source shows.
    """
    seen = {question.node: context.observed_at(code, ROWS, question.node) for question in questions_about_mask(rows)}
    runs = [one.runs for one in seen.values() if one is not None]
    known = {node: one for node, one in seen.items() if one is not None}
    if len(known) < len(seen) or not _facts_match_source(rows, known):
        return None
    message = Message("computes with all rows and their mask, not with a dynamic number of rows")
    return Change(rows.first, message, tuple(_edits_to_mask(context, rows)), (DATA,), min(runs))


def _facts_match_source(rows: SelectedRows, seen: dict[ast.AST, Seen]) -> bool:
    """Return True if the ranks, sizes and types that were seen are those that the source suggests."""
    ranks = {node: one.only("rank") for node, one in seen.items()}
    if any(not isinstance(rank, int) for rank in ranks.values()) or seen[rows.mask].only("dtype") != "bool":
        return False

    def rank_of(kind: Rows) -> int:
        return int(str(ranks[kind.selection])) + kind.more

    mask_rank = int(str(ranks[rows.mask]))
    for selected in rows.selections:
        if selected.is_gather:  # gather takes longer values, too
            if ranks[selected.values] != rank_of(Rows(selected.call, mask_rank - 1)):
                return False
            if not _same_rows(seen[selected.values], seen[rows.mask]):
                return False
    for operand, kind in [*((part.operand, part.rows) for part in rows.reductions), *rows.counted_rows()]:
        if ranks[operand] != rank_of(kind) or not _same_rows(seen[operand], seen[kind.selection]):
            return False
    for part in rows.reductions:
        types = seen[part.operand].all("dtype")
        if types is None or not all(one in _FLOATS or part.function != "mean" and "int" in str(one) for one in types):
            return False
    return (
        mask_rank >= 1
        and (mask_rank == 1 or not rows.flat)
        and all(rank_of(one) == rank_of(other) for one, other in rows.equal)
        and all(rank_of(one) >= 2 for one in rows.at_least_two)
        and all(rank_of(one) == 1 for one in rows.vectors)
    )


def _same_rows(one: Seen, other: Seen) -> bool:
    values, others = one.values.get("rows"), other.values.get("rows")
    if values is None or others is None or values.more != others.more:
        return False
    if values.more:
        return (values.least, values.most) == (others.least, others.most)
    return set(values.distinct) == set(others.distinct)


def _edits_to_mask(context: Context, rows: SelectedRows) -> Iterator[Edit]:
    source = context.source
    operands = {part.operand for part in rows.reductions}
    counted = [(source.start(part.node), source.end(part.node)) for part in rows.counts]
    for place in rows.places:
        if not any(start <= source.start(place) < end for start, end in counted):
            yield from _edits_from_positions_to_mask(context, place)
    for selected in rows.selections:
        if selected.call in operands and not selected.is_gather:
            yield from _edits_that_leave_only_values(context, selected)
        else:
            yield edit_to_rename(source, selected.call.func, f"{DATA}.masked_rows")
            for keyword in selected.call.keywords:
                if keyword.arg == "tensor":
                    yield rename_keyword(source, selected.call, keyword, "values")
    for part in rows.reductions:
        yield edit_to_rename(source, part.call.func, f"{DATA}.masked_{part.function}")
        end = argument_end(source, part.call, part.operand)
        yield Edit(end, end, f", {part.mask}", closing=True)
    for count in rows.counts:
        yield Edit(source.start(count.node), source.end(count.node), f"{DATA}.masked_count({count.mask})")


def _edits_that_leave_only_values(context: Context, selected: Selected) -> Iterator[Edit]:
    """Yield the edits that leave the values of a call of ``boolean_mask``."""
    source, call = context.source, selected.call
    keyword = bind_arguments(call, ("tensor", "mask")).keywords.get("tensor")
    start = argument_start(source, call, selected.values)
    start = keyword_value_start(source, call, keyword) if keyword is not None else start
    yield Edit(source.start(call), start, "")
    yield Edit(argument_end(source, call, selected.values), source.end(call), "")


def _edits_from_positions_to_mask(context: Context, place: ast.expr) -> Iterator[Edit]:
    """Yield the edits that replace positions with the mask that they are of."""
    source = context.source
    calls = [
        part for part in ast.walk(place) if isinstance(part, ast.Call) and context.called_names.get(part, "") in WHERE
    ]
    if not calls:
        name = next(
            part for part in ast.walk(place) if isinstance(part, ast.Name) and _takes_positions_from(part, place)
        )
        yield Edit(source.start(place), source.end(place), name.id)
        return
    condition = bind_arguments(calls[0], ("condition",)).args["condition"]
    opening, closing = ("", "") if is_one_statement(source.segment(condition)) else ("(", ")")
    yield Edit(source.start(place), source.start(condition), opening)
    yield Edit(source.end(condition), source.end(place), closing)


def _takes_positions_from(name: ast.Name, place: ast.expr) -> bool:
    """Return True if a name is what an expression takes positions from."""
    return place.value is name if isinstance(place, ast.Subscript) else name in getattr(place, "args", ())
