"""Boolean masks and partitions with a dynamic number of rows.

``tf.boolean_mask`` and ``tf.dynamic_partition`` return one row for each true element of the mask. This number is
known only at run time, and the NPU recompiles for each new number.

* A sum, mean, maximum or minimum over the selected rows needs no selection. Multiply by a mask of static shape,
  broadcast to the shape of ``x``.
* Otherwise use ``npu_shim.data.masked_select``. ``MOST`` is the largest number of rows that can occur. Multiply what
  follows by ``tf.cast(valid, x.dtype)``, so that the padded rows have no effect.

With facts of ``npu-shim observe``, the rule rewrites rows that are computed one by one until a sum, mean, maximum or
minimum: ``npu_shim.data.masked_mean(x, mask)`` and the like have static shapes and need no bound. The facts must show
the ranks and types. Other findings name the numbers of rows that were seen, and there is none if only the input
pipeline selects, or if eager code always selected the same number.

The rule reports one finding for each statement.

Reported::

    import tensorflow as tf

    loss = tf.reduce_mean(tf.boolean_mask(losses, mask))

Reported::

    import tensorflow as tf

    negatives, positives = tf.dynamic_partition(scores, labels, 2)

Untouched::

    import tensorflow as tf

    weights = tf.cast(mask, tf.float32)
    loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)

Untouched::

    from numpy.ma import boolean_mask
    import tensorflow as tf

    rows = boolean_mask(rows, mask)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_first_call, runs_on_npu
from ...analysis.row_uses import BOOLEAN_MASK
from ...analysis.selected_rows import selected_rows
from ...facts.kinds import ROWS
from ...rewrite.masked_reductions import change_to_masked_reductions, questions_about_mask
from ...rewrite.seen_findings import size_findings
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Change, Context, Finding, Question

CODE = "NPU231"
_PARTITION = "tensorflow.dynamic_partition"
CALLS = BOOLEAN_MASK | {"tensorflow.ragged.boolean_mask", _PARTITION}
# The reductions of the selected rows, written with a mask of static shape.
_REDUCED = {
    "reduce_sum": "weights = tf.cast(mask, x.dtype) and tf.reduce_sum(x * weights)",
    "reduce_mean": "weights = tf.cast(mask, x.dtype) and tf.reduce_sum(x * weights) / tf.reduce_sum(weights)",
    "reduce_max": "tf.reduce_max(tf.where(mask, x, tf.fill(tf.shape(x), x.dtype.min)))",
    "reduce_min": "tf.reduce_min(tf.where(mask, x, tf.fill(tf.shape(x), x.dtype.max)))",
}


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if not runs_on_npu(context, call.node):
        return
    rows = selected_rows(context, call.node)
    change = change_to_masked_reductions(context, CODE, rows) if rows is not None else None
    if rows is not None and change is not None:
        if rows.first is call.node:
            yield change
        return
    if not is_first_call(context, call, CALLS, call.where.statement or context.names.tree):
        return
    parent = context.names.parents.get(call.node)
    around = (context.resolve(parent.func, call.where) or "") if isinstance(parent, ast.Call) else ""
    if name == _PARTITION:
        replacement = "tf.where(tf.equal(partitions, i), x, tf.zeros_like(x)) for each part i"
    else:
        reduced = _REDUCED.get(last_part(around)) if around.startswith("tensorflow.") else None
        replacement = (
            reduced or "rows, valid = npu_shim.data.masked_select(x, mask, MOST) and mask what follows with valid"
        )
    asks = (Question(ROWS, call.node), *(questions_about_mask(rows) if rows is not None else ()))
    finding = Finding(
        call.node, "dynamic number of rows: the NPU recompiles for each. Write {0}", replacement, asks=asks
    )
    yield from size_findings(context, CODE, finding)
