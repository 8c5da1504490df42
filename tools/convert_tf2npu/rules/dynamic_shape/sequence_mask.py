"""tf.sequence_mask without maxlen.

Without ``maxlen`` the mask is as wide as the largest of its lengths. This width is known only at run time, and the
NPU recompiles for each new width. Pass the length that the input is padded to.

With facts of ``npu-shim observe``, a mask that always had one width gets it: ``npu_shim.data.sequence_mask(lengths,
maxlen=128)`` is an error, with its line, if the longest length of a later batch is another one. Otherwise the finding
names the widths that were seen, and there is none if only the input pipeline makes the mask.

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
from ...facts.kinds import ROWS
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename
from ...rewrite.masked_reductions import DATA
from ...rewrite.seen_findings import size_findings, was_never_on_npu
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ..base import Change, Context, Finding, Message

CODE = "NPU239"
CALLS = frozenset({"tensorflow.sequence_mask"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    bound = bind_arguments(call.node, ("lengths", "maxlen", "dtype", "name"))
    if bound.hidden or bound.is_given("maxlen") or not runs_on_npu(context, call.node):
        return
    seen = context.observed_at(CODE, ROWS, call.node)
    width = seen.only("last") if seen is not None and seen.only("repeated") else None
    added = edit_to_add_argument(context.source, call.node, f"maxlen={width}")
    if (
        seen is not None
        and isinstance(width, int)
        and "maxlen" not in bound.args
        and added is not None
        and not was_never_on_npu(context, CODE, ROWS, call.node)
    ):
        edits = edit_to_rename(context.source, call.node.func, f"{DATA}.sequence_mask"), added
        yield Change(call.node, Message("tf.sequence_mask gets the width {0}", width), edits, (DATA,), seen.runs)
        return
    finding = Finding(
        call.node,
        "dynamic mask width: the NPU recompiles for each new width. "
        "Pass maxlen=LENGTH, the length the input is padded to",
    )
    yield from size_findings(context, CODE, finding, "last")
