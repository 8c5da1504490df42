"""Calls of which the vendor says both that they are supported and that they are not.

The vendor's support list has the status "supported" for them, with a note against their use. Nobody
should find out after hours of training which is true: run one step with them on a card first. Each
name is told once in a file.

Told::

    import tensorflow as tf

    loss = tf.nn.ctc_loss(labels, logits, lengths)

Told::

    import tensorflow as tf

    total = tf.add_n(losses) + tf.accumulate_n(others)

Untouched::

    import tensorflow as tf

    total = tf.add_n(losses)
    y = tf.nn.separable_conv2d(x, depthwise, pointwise, [1, 1, 1, 1], 'SAME')
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import first_call, runs_on_card
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.support import names_of
from ..base import Context, Finding, Result

CODE = "NPU214"
CALLS = names_of("unclear")
_INSTEAD = {
    "accumulate_n": "write tf.add_n, which computes the same",
    "embedding_lookup_sparse": "pad the ids to a fixed number and write tf.nn.embedding_lookup with a mask",
    "safe_embedding_lookup_sparse": "pad the ids to a fixed number and write tf.nn.embedding_lookup with a mask",
    "ctc_greedy_decoder": "decode on the host, from the fetched logits",
    "ctc_beam_search_decoder": "decode on the host, from the fetched logits",
}


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    short = last_part(name)
    if runs_on_card(context, call.node) and first_call(context, call, frozenset({name or ""}), context.names.tree):
        yield Finding(
            call.node,
            "the vendor's support list says of {} both that it is supported and that it is to be avoided; {}".format(
                short, _INSTEAD.get(short, "run one step with it on a card before a long training")
            ),
        )
