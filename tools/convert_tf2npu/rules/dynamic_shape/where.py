"""tf.where with a condition only.

``tf.where(condition)`` returns the positions where the condition is true. Their number is known only at run time, so
all results computed from them have a dynamic shape, and the NPU recompiles for each new number.

* With all three arguments the shape is static: ``tf.where(condition, x, tf.zeros_like(x))``.
* If you need the positions, write ``places, valid = npu_shim.data.masked_where(condition, MOST)``. ``MOST`` is the
  largest number of positions that can occur.

With facts of ``npu-shim observe``, the rule rewrites positions at which ``tf.gather_nd`` or ``tf.gather`` takes rows
that are computed one by one until a sum, mean, maximum or minimum: the condition serves as their mask, with
``npu_shim.data.masked_sum`` and the like, and ``tf.shape(places)[0]`` becomes a count. Other findings name the numbers
of positions that were seen, and there is none if only the input pipeline computes them, or if eager code always
computed the same number.

Reported::

    import tensorflow as tf

    places = tf.where(tf.greater(scores, 0.5))
    chosen = tf.gather_nd(scores, places)

Untouched::

    import tensorflow as tf

    chosen = tf.where(tf.greater(scores, 0.5), scores, tf.zeros_like(scores))

Untouched::

    import numpy as np
    import tensorflow as tf

    places = np.where(scores > 0.5)

Untouched::

    import tensorflow as tf

    dataset = tf.data.TFRecordDataset(files).map(lambda r: tf.where(r > 0))
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.row_uses import WHERE, WHERE_PARAMETERS
from ...analysis.selected_rows import selected_rows
from ...facts.kinds import ROWS
from ...rewrite.masked_reductions import change_to_masked_reductions, questions_about_mask
from ...rewrite.seen_findings import size_findings
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ..base import Change, Context, Finding, Question

CODE = "NPU230"
CALLS = WHERE


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    bound = bind_arguments(call.node, WHERE_PARAMETERS)
    if bound.hidden or bound.is_given("x") or not runs_on_npu(context, call.node):
        return
    places = selected_rows(context, call.node)
    change = change_to_masked_reductions(context, CODE, places) if places is not None else None
    if places is not None and change is not None:
        if places.first is call.node:
            yield change
        return
    finding = Finding(
        call.node,
        "dynamic number of positions: the NPU recompiles for each. Write tf.where(condition, x, tf.zeros_like(x)) "
        "or npu_shim.data.masked_where(condition, MOST)",
        asks=(Question(ROWS, call.node), *(questions_about_mask(places) if places is not None else ())),
    )
    yield from size_findings(context, CODE, finding)
