"""Unique values and set operations with a dynamic size.

The number of values that ``tf.unique`` and the set operations return is known only at run time, and the NPU
recompiles for each new number. Compute them in the input pipeline and pad them there, or use an operation with a
static shape:

* ``values, valid, index = npu_shim.data.unique_padded(x)`` for unique values;
* ``tf.math.unsorted_segment_sum(x, ids, NUMBER_OF_IDS)`` for sums by id.

With facts of ``npu-shim observe``, the finding names the numbers of values that were seen, and there is none if only
the input pipeline computes them, or if eager code always computed the same number.

Reported::

    import tensorflow as tf

    values, index = tf.unique(ids)

Reported::

    import tensorflow as tf

    rest = tf.setdiff1d(tf.range(100), chosen)

Untouched::

    import numpy as np
    import tensorflow as tf

    values = np.unique(ids)
    sums = tf.math.unsorted_segment_sum(x, ids, 1000)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...rewrite.seen_findings import size_findings
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Change, Context, Finding

CODE = "NPU232"
CALLS = frozenset(
    "tensorflow." + name
    for name in """unique unique_with_counts setdiff1d
sets.set_difference sets.set_intersection sets.set_union sets.difference sets.intersection sets.union
""".split()
)

_SUMMED = "Compute and pad it in the input pipeline, or sum by id with tf.math.unsorted_segment_sum"
_ADVICE = {"unique": "Write values, valid, index = npu_shim.data.unique_padded(x), or compute it in the input pipeline"}


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if runs_on_npu(context, call.node):
        advice = _ADVICE.get(last_part(name), _SUMMED)
        finding = Finding(call.node, "dynamic number of values: the NPU recompiles for each. {0}", advice)
        yield from size_findings(context, CODE, finding)
