"""tf.unique and the operations on sets.

How many different values there are is known only when the graph runs; the card compiles the graph again
for each number it meets.

Told::

    import tensorflow as tf

    values, index = tf.unique(ids)

Told::

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

from ...analysis.device_placement import runs_on_card
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU232"
CALLS = frozenset(
    "tensorflow." + name
    for name in """unique unique_with_counts setdiff1d
sets.set_difference sets.set_intersection sets.set_union sets.difference sets.intersection sets.union
""".split()
)

_SUMMED = "sum by id with tf.math.unsorted_segment_sum(x, ids, NUMBER_OF_IDS)"
_INSTEAD = {"unique": "write values, valid, index = npu_shim.data.unique_padded(x)"}


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if runs_on_card(context, call.node):
        last = last_part(name)
        yield Finding(
            call.node,
            f"how many values {last} gives is known only when it runs, and the card compiles "
            "the graph again for each number; compute it in the input pipeline and pad it, or "
            f"{_INSTEAD.get(last, _SUMMED)}, whose shape is fixed",
        )
