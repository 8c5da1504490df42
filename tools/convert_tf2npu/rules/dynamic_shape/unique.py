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

from typing import Iterator, Optional

from ...semantics.model import Call
from ..registry import Context, Finding, Result
from ...analysis.device_placement import runs_on_card

CODE = 'NPU232'
CALLS = frozenset('tensorflow.' + name for name in '''unique unique_with_counts setdiff1d
sets.set_difference sets.set_intersection sets.set_union sets.difference sets.intersection sets.union
'''.split())

_SUMMED = 'sum by id with tf.math.unsorted_segment_sum(x, ids, NUMBER_OF_IDS)'
_INSTEAD = {'unique': 'write values, valid, index = npu_shim.data.unique_padded(x)'}


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    if runs_on_card(context, call.node):
        last = (name or '').rsplit('.', 1)[1]
        yield Finding(call.node, 'how many values %s gives is known only when it runs, and the card compiles '
                      'the graph again for each number; compute it in the input pipeline and pad it, or '
                      '%s, whose shape is fixed' % (last, _INSTEAD.get(last, _SUMMED)))
