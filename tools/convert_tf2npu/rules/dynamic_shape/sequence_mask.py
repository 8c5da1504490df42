"""tf.sequence_mask without maxlen.

Without ``maxlen`` the mask is as wide as the largest of its lengths. This width is known only at run time, and the
NPU recompiles for each new width. Pass the length that the input is padded to.

With facts of ``npu-shim observe`` with TensorFlow 1, the rule rewrites a mask that only ``tf.where(mask, x, y)`` takes:
``npu_shim.data.sequence_mask_like(lengths, x)`` is as wide as the last dimension of ``x``, and raises an error if a
length is greater. Other findings name the widths that were seen, and there is none if only the input pipeline makes the
mask, or if eager code always made one width. A width that was seen is not written: a run that reads the shape of the
mask and not its values would get it also for other lengths.

Reported::

    import tensorflow as tf

    mask = tf.sequence_mask(lengths, dtype=tf.float32)

Untouched::

    import tensorflow as tf

    mask = tf.sequence_mask(lengths, 128)
    other = tf.sequence_mask(lengths, maxlen=FLAGS.max_length)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...facts.kinds import ROWS
from ...facts.seen import Seen
from ...files.message import Message
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename
from ...rewrite.masked_reductions import DATA
from ...rewrite.seen_findings import size_findings
from ...semantics.mentions import reads_of_assigned_name
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ..base import Change, Context, Finding, Question

CODE = "NPU239"
CALLS = frozenset({"tensorflow.sequence_mask"})
_WHERE = frozenset({"tensorflow.where", "tensorflow.compat.v1.where"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    bound = bind_arguments(call.node, ("lengths", "maxlen", "dtype", "name"))
    if bound.hidden or bound.is_given("maxlen") or not runs_on_npu(context, call.node):
        return
    is_plain = bound.unknown is None and set(bound.args) == {"lengths"}
    values = _values_that_it_chooses(context, call) if is_plain else None
    change = _change_to_width_of_values(context, call, values) if values is not None else None
    if change is not None:
        yield change
        return
    asks = (Question(ROWS, call.node), *([Question(ROWS, values)] if values is not None else ()))
    finding = Finding(
        call.node,
        "dynamic mask width: the NPU recompiles for each new width. "
        "Pass maxlen=LENGTH, the length the input is padded to",
        asks=asks,
    )
    yield from size_findings(context, CODE, finding, "last")


def _values_that_it_chooses(context: Context, call: Call) -> ast.Name | None:
    """Return the name that has the shape of a mask in ``tf.where(mask, x, y)``, already where the mask is made."""
    parent = context.names.parents[call.node]
    statement = call.where.statement
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None
    target, scope = parent.targets[0], call.where.scope
    reads = reads_of_assigned_name(target, context.names)
    if len(scope.bindings.get(target.id, ())) != 1 or target.id in scope.elsewhere or not reads:
        return None
    values: ast.expr | None = None
    for read in reads:
        where = context.names.parents.get(read.node)
        if read.names is not context.names or not isinstance(where, ast.Call) or where.args[:1] != [read.node]:
            return None
        if context.called_names.get(where) not in _WHERE or len(where.args) != 3 or where.keywords:
            return None
        values = values or where.args[1]
    if not isinstance(values, ast.Name) or values.id in scope.elsewhere:
        return None
    block = _block_of(context, statement)
    user = context.names.place(values).statement
    if statement not in block or user not in block:
        return None
    between = block[block.index(statement) : block.index(user)]
    is_same = not any(_binds_name(node, values.id) for part in between for node in ast.walk(part))
    return values if between and is_same and context.names.bindings_of_name(values.id, call.where) else None


def _binds_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _block_of(context: Context, statement: ast.stmt | None) -> list[ast.stmt]:
    """Return the statements that run one after the other with a statement."""
    parent = context.names.parents.get(statement) if statement is not None else None
    bodies = [getattr(parent, field, None) for field in ("body", "orelse", "finalbody")]
    return next((body for body in bodies if isinstance(body, list) and statement in body), [])


def _change_to_width_of_values(context: Context, call: Call, values: ast.Name) -> Change | None:
    """Return the change that takes the width of the values; None unless facts show that the shapes must be equal.

    ``tf.where`` of TensorFlow 1 takes a mask of the shape of the values, or of one dimension. That of TensorFlow 2 repeats
    a mask of the width 1.
    """
    mask, chosen = (context.observed_at(CODE, ROWS, node) for node in (call.node, values))
    if mask is None or chosen is None or not context.ran_with_tensorflow("1.", CODE, call.node):
        return None
    rank = mask.only("rank")
    if not isinstance(rank, int) or rank < 2 or chosen.only("rank") != rank or not _same_widths(mask, chosen):
        return None
    added = edit_to_add_argument(context.source, call.node, f"values={values.id}" if call.node.keywords else values.id)
    if added is None or {*(mask.all("place") or ()), *(chosen.all("place") or ())} != {"graph"}:
        return None
    edits = edit_to_rename(context.source, call.node.func, f"{DATA}.sequence_mask_like"), added
    message = Message("the mask is as wide as the values that it chooses")
    return Change(call.node, message, edits, (DATA,), min(mask.runs, chosen.runs))


def _same_widths(mask: Seen, values: Seen) -> bool:
    widths, others = mask.all("last"), values.all("last")
    return widths is not None and others is not None and set(widths) == set(others)
