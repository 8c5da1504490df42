"""tf.sequence_mask without a length.

Without ``maxlen`` the mask is as wide as the longest of its lengths, which is known only when the graph
runs; the card compiles the graph again for each width it meets.

Told::

    import tensorflow as tf

    mask = tf.sequence_mask(lengths, dtype=tf.float32)

Untouched::

    import tensorflow as tf

    mask = tf.sequence_mask(lengths, 128)
    other = tf.sequence_mask(lengths, maxlen=FLAGS.max_length)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_card
from ...semantics.model import Call
from ...semantics.signatures import bind
from ..base import Context, Finding, Result

CODE = "NPU239"
CALLS = frozenset({"tensorflow.sequence_mask"})


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    bound = bind(call.node, ("lengths", "maxlen", "dtype", "name"))
    if not bound.hidden and not bound.given("maxlen") and runs_on_card(context, call.node):
        yield Finding(
            call.node,
            "the mask is as wide as the longest length, which is known only when it runs, "
            "and the card compiles the graph again for each width; write maxlen=, the length that "
            "the input is padded to",
        )
