"""tf.where with a condition alone.

``tf.where(condition)`` gives the places where the condition holds; how many there are is known only
when the graph runs. All that is computed from them has an unknown shape, and the card compiles the
graph again for each number it meets. With all three arguments the shape is known.

Told::

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

from ...analysis.device_placement import runs_on_card
from ...semantics.model import Call
from ...semantics.signatures import bind
from ..base import Context, Finding, Result

CODE = "NPU230"
CALLS = frozenset(
    {"tensorflow.where", "tensorflow.where_v2", "tensorflow.argwhere", "tensorflow.python.ops.array_ops.where"}
)
_SIGNATURE = ("condition", "x", "y", "name")


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    bound = bind(call.node, _SIGNATURE)
    if bound.hidden or bound.given("x") or not runs_on_card(context, call.node):
        return
    yield Finding(
        call.node,
        "how many places this gives is known only when it runs, and the card compiles "
        "the graph again for each number; keep the shape and mask: tf.where(condition, x, "
        "tf.zeros_like(x)), or write places, valid = npu_shim.data.masked_where(condition, MOST), "
        "where MOST is the largest number there can be",
    )
