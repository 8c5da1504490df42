"""Calls with contradictory support information.

The vendor's support list for TensorFlow 1.15 marks these calls as supported, with a note against their use. Replace them if
there is another way. Otherwise run one step with them on an NPU before a long training. The rule reports each name once for
each file. The list for TensorFlow 2.6 has no such note, so programs of TensorFlow 2 are not reported.

Reported::

    import tensorflow as tf

    loss = tf.nn.ctc_loss(labels, logits, lengths)

Reported::

    import tensorflow as tf

    total = tf.add_n(losses) + tf.accumulate_n(others)

Untouched::

    import tensorflow as tf

    total = tf.add_n(losses)
    y = tf.nn.separable_conv2d(x, depthwise, pointwise, [1, 1, 1, 1], 'SAME')

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return tf.nn.ctc_loss(labels, x, label_lengths, lengths)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_first_call, runs_on_npu
from ...analysis.tensorflow_version import is_tf2_program
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding

CODE = "NPU214"
CALLS = calls_of_kind("unclear")
_ADVICE = {
    "accumulate_n": "Use tf.add_n, which computes the same",
    "embedding_lookup_sparse": "Pad the ids to a fixed number and use tf.nn.embedding_lookup with a mask",
    "safe_embedding_lookup_sparse": "Pad the ids to a fixed number and use tf.nn.embedding_lookup with a mask",
    "ctc_greedy_decoder": "Decode on the host from the fetched logits",
    "ctc_beam_search_decoder": "Decode on the host from the fetched logits",
}


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short = last_part(name)
    if (
        runs_on_npu(context, call.node)
        and is_first_call(context, call, frozenset({name}), context.names.tree)
        and not is_tf2_program(context)
    ):
        advice = _ADVICE.get(short, "Run one step with it on an NPU before a long training")
        yield Finding(call.node, "the support information for {0} is contradictory. {1}", short, advice)
