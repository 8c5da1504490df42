"""tf.nn.top_k with a dynamic k.

The shape of the result depends on k. If k is a tensor, for example in hard example mining with three negatives for
each positive, the NPU recompiles for each new value.

* Use ``npu_shim.data.top_k_mask(x, k)``. It marks the k largest elements and has the shape of ``x``.
* Or use a constant ``K`` that is large enough, and mask the rest with ``tf.range(K) < k``.

With facts of ``npu-shim observe``, the rule rewrites the largest values of a vector of which only sums, means, maxima
and minima are computed: ``npu_shim.data.masked_mean(x, x_mask)`` and the like have static shapes and need no bound. The
facts must show one size of ``x`` and floating-point numbers. A k greater than this size is an error at run time, as in
TensorFlow. Other findings name the values of k that were seen, and there is none if only the input pipeline computes
them, or if eager code always computed the same number.

Reported::

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

from ...analysis.device_placement import runs_on_npu
from ...analysis.tensors import is_computed_from_fed_data
from ...facts.kinds import ROWS
from ...rewrite.masked_top_k import change_to_masked_largest, largest_values, questions_about_largest
from ...rewrite.seen_findings import size_findings, was_never_on_npu
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ..base import Change, Context, Finding, Question

CODE = "NPU235"
CALLS = frozenset({"tensorflow.nn.top_k", "tensorflow.math.top_k"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    k = bind_arguments(call.node, ("input", "k", "sorted", "name")).args.get("k")
    if not is_computed_from_fed_data(context, k, call.where) or not runs_on_npu(context, call.node):
        return
    largest = largest_values(context, call)
    change = change_to_masked_largest(context, CODE, largest) if largest is not None else None
    if change is not None and not was_never_on_npu(context, CODE, ROWS, call.node):
        yield change
        return
    finding = Finding(
        call.node,
        "dynamic k: the NPU recompiles for each new value. Write mask = npu_shim.data.top_k_mask(x, k), "
        "or use a constant K and the mask tf.range(K) < k",
        asks=questions_about_largest(largest) if largest is not None else (Question(ROWS, call.node),),
    )
    yield from size_findings(context, CODE, finding, "last")
