"""tf.sequence_mask without maxlen.

Without ``maxlen`` the mask is as wide as the largest of its lengths. This width is known only at run time, and the
NPU recompiles for each new width. Pass the length that the input is padded to.

Reported::

    import tensorflow as tf

    mask = tf.sequence_mask(lengths, dtype=tf.float32)

Untouched::

    import tensorflow as tf

    mask = tf.sequence_mask(lengths, 128)
    other = tf.sequence_mask(lengths, maxlen=FLAGS.max_length)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...semantics.model import Call
from ...semantics.signatures import bind
from ..base import Context, Finding, Result

CODE = "NPU239"
CALLS = frozenset({"tensorflow.sequence_mask"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    bound = bind(call.node, ("lengths", "maxlen", "dtype", "name"))
    if not bound.hidden and not bound.given("maxlen") and runs_on_npu(context, call.node):
        yield Finding(
            call.node,
            "dynamic mask width: the NPU recompiles for each new width. "
            "Pass maxlen=LENGTH, the length the input is padded to",
        )
