"""tf.boolean_mask and tf.dynamic_partition.

They give as many rows as the mask has true ones, which is known only when the graph runs; the card
compiles the graph again for each number it meets. A sum or a mean over the chosen rows can be had with
a mask of fixed shape. Told once in a statement.

Told::

    import tensorflow as tf

    loss = tf.reduce_mean(tf.boolean_mask(losses, mask))

Told::

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

from ...analysis.device_placement import first_call, runs_on_card
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU231"
_PARTITION = "tensorflow.dynamic_partition"
CALLS = frozenset(
    {
        "tensorflow.boolean_mask",
        "tensorflow.ragged.boolean_mask",
        _PARTITION,
        "tensorflow.python.ops.array_ops.boolean_mask",
    }
)
_WEIGHTS = "weights = tf.cast(mask, x.dtype), broadcast to the shape of x, and tf.reduce_sum(x * weights)"
# What a reduction of the chosen rows is with a mask of fixed shape.
_REDUCED = {
    "reduce_sum": _WEIGHTS,
    "reduce_mean": _WEIGHTS + " / tf.reduce_sum(weights)",
    "reduce_max": "tf.reduce_max(tf.where(mask, x, tf.fill(tf.shape(x), x.dtype.min)))",
    "reduce_min": "tf.reduce_min(tf.where(mask, x, tf.fill(tf.shape(x), x.dtype.max)))",
}


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    statement = call.where.statement or context.names.tree
    if not runs_on_card(context, call.node) or not first_call(context, call, CALLS, statement):
        return
    parent = context.names.parents.get(call.node)
    around = (context.resolve(parent.func, call.where) or "") if isinstance(parent, ast.Call) else ""
    if name == _PARTITION:
        instead = "tf.where(tf.equal(partitions, i), x, tf.zeros_like(x)) for each part i"
    else:
        reduced = _REDUCED.get(last_part(around)) if around.startswith("tensorflow.") else None
        instead = reduced or (
            "rows, valid = npu_shim.data.masked_select(x, mask, MOST), where MOST is the "
            "largest number there can be, and leave the rows that are not valid out of what "
            "follows by a factor tf.cast(valid, x.dtype)"
        )
    yield Finding(
        call.node,
        "how many rows this keeps is known only when it runs, and the card compiles the "
        "graph again for each number; write " + instead,
    )
