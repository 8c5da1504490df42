"""tf.nn.top_k whose k is computed in the graph.

The shape of the result depends on k. Where k is a tensor, as with hard example mining that keeps three
negatives for each positive, it changes from step to step and the card compiles the graph again for each
value. A constant k, or a threshold instead of a number, keeps the shape.

Told::

    import tensorflow as tf

    k = tf.cast(3 * tf.reduce_sum(positives), tf.int32)
    worst, index = tf.nn.top_k(losses, k=k)

Untouched::

    import tensorflow as tf

    worst, index = tf.nn.top_k(losses, k=100)
    best, _ = tf.nn.top_k(scores, FLAGS.beam_size)

Untouched::

    import tensorflow as tf

    def best(scores, k):
        return tf.nn.top_k(scores, k)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_card
from ...analysis.tensors import is_computed
from ...semantics.model import Call
from ...semantics.signatures import bind
from ..base import Context, Finding, Result

CODE = "NPU235"
CALLS = frozenset({"tensorflow.nn.top_k", "tensorflow.math.top_k"})


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    k = bind(call.node, ("input", "k", "sorted", "name")).args.get("k")
    if is_computed(context, k, call.where) and runs_on_card(context, call.node):
        yield Finding(
            call.node,
            "k is computed in the graph, so that the shape of the result is unknown and "
            "the card compiles again for each value; mask what is not among the k largest: mask = "
            "npu_shim.data.top_k_mask(x, k), or take a constant k that is large enough and mask "
            "the rest: tf.range(K) < k",
        )
