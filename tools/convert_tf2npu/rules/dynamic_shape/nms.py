"""Non-maximum suppression that gives a varying number of boxes.

``tf.image.non_max_suppression`` gives at most so many boxes, and how many is known only when the graph
runs. Its padded form always gives that many, with the number of valid ones.

Told::

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

from ...analysis.device_placement import runs_on_card
from ...semantics.model import Call
from ...syntax.expressions import constant
from ..base import Context, Finding, Result

CODE = "NPU233"
_PADDED = "tensorflow.image.non_max_suppression_padded"
CALLS = frozenset(
    "tensorflow.image." + name
    for name in """non_max_suppression
non_max_suppression_with_scores non_max_suppression_overlaps non_max_suppression_padded""".split()
)


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if not runs_on_card(context, call.node):
        return
    if name == _PADDED:
        keywords = {k.arg: k.value for k in call.node.keywords}
        given = keywords.get("pad_to_max_output_size")
        if given is None and len(call.node.args) > 5:
            given = call.node.args[5]
        if None in keywords or (given is not None and constant(given) != (False,)):
            return
        yield Finding(
            call.node,
            "without pad_to_max_output_size=True the number of boxes varies, and the card "
            "compiles the graph again for each; write pad_to_max_output_size=True",
        )
        return
    yield Finding(
        call.node,
        "how many boxes this keeps is known only when it runs, and the card compiles the "
        "graph again for each number; write kept, valid = tf.image.non_max_suppression_padded("
        "boxes, scores, max_output_size, pad_to_max_output_size=True) and mask what lies "
        "beyond valid",
    )
