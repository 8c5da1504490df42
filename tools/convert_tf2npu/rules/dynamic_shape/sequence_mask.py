"""tf.sequence_mask without maxlen.

Without ``maxlen`` the mask is as wide as the largest of its lengths. This width is known only at run time, and the
NPU recompiles for each new width. Pass the length that the input is padded to.

With facts of ``npu-shim observe``, the finding names the widths that were seen, and there is none if only the input
pipeline makes the mask. A width that was seen is not written: a run that reads the shape of the mask and not its values
would get it also for other lengths.

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
from ...rewrite.seen_findings import size_findings
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ..base import Context, Finding

CODE = "NPU239"
CALLS = frozenset({"tensorflow.sequence_mask"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    bound = bind_arguments(call.node, ("lengths", "maxlen", "dtype", "name"))
    if bound.hidden or bound.is_given("maxlen") or not runs_on_npu(context, call.node):
        return
    finding = Finding(
        call.node,
        "dynamic mask width: the NPU recompiles for each new width. "
        "Pass maxlen=LENGTH, the length the input is padded to",
    )
    yield from size_findings(context, CODE, finding, "last")
