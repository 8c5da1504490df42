"""Non-maximum suppression with a dynamic number of boxes.

``tf.image.non_max_suppression`` returns up to ``max_output_size`` boxes. Their number is known only at run time, and
the NPU recompiles for each new number. The padded form always returns ``max_output_size`` boxes and the number of
valid ones. Mask the boxes beyond this number.

With facts of ``npu-shim observe``, the finding names the numbers of boxes that were seen, and there is none if only the
input pipeline computes them, or if eager code always computed the same number.

Reported::

    import tensorflow as tf

    kept = tf.image.non_max_suppression(boxes, scores, 100, 0.5)

Untouched::

    import tensorflow as tf

    kept, valid = tf.image.non_max_suppression_padded(
        boxes, scores, 100, 0.5, pad_to_max_output_size=True)

Untouched::

    import tensorflow as tf

    boxes, scores, classes, valid = tf.image.combined_non_max_suppression(boxes, scores, 10, 100)

Untouched::

    from boxes import non_max_suppression
    import tensorflow as tf

    kept = non_max_suppression(boxes, scores, 100)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...rewrite.seen_findings import size_findings
from ...semantics.model import Call
from ...syntax.expressions import boxed_constant
from ..base import Change, Context, Finding

CODE = "NPU233"
_RECOMPILES = "dynamic number of boxes: the NPU recompiles for each"
_PADDED = "tensorflow.image.non_max_suppression_padded"
CALLS = frozenset(
    "tensorflow.image." + name
    for name in """non_max_suppression
non_max_suppression_with_scores non_max_suppression_overlaps non_max_suppression_padded""".split()
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if not runs_on_npu(context, call.node):
        return
    if name == _PADDED:
        keywords = {k.arg: k.value for k in call.node.keywords}
        given = keywords.get("pad_to_max_output_size")
        if given is None and len(call.node.args) > 5:
            given = call.node.args[5]
        if None in keywords or (given is not None and boxed_constant(given) != (False,)):
            return
        finding = Finding(
            call.node, "{0}. Pass pad_to_max_output_size=True and mask the boxes beyond valid", _RECOMPILES
        )
    else:
        finding = Finding(
            call.node, "{0}. Use tf.image.non_max_suppression_padded(..., pad_to_max_output_size=True)", _RECOMPILES
        )
    yield from size_findings(context, CODE, finding)
