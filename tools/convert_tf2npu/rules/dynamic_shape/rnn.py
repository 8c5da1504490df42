"""Recurrent layers that loop over time.

``tf.nn.dynamic_rnn`` runs the time steps one by one in a loop on the NPU. ``npu_rnn.npu_dynamic_rnn`` is unrolled
over a fixed number of steps. Its inputs and outputs have time as the first dimension. It takes ``dtype`` and
``sequence_length`` too.

Reported::

    import tensorflow as tf

    cell = tf.nn.rnn_cell.LSTMCell(256)
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)

Reported::

    import tensorflow as tf

    outputs, states = tf.nn.bidirectional_dynamic_rnn(forward, backward, inputs, lengths, dtype=tf.float32)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    cell = tf.nn.rnn_cell.LSTMCell(256)
    outputs, state = npu_rnn.npu_dynamic_rnn(cell, tf.transpose(inputs, [1, 0, 2]), dtype=tf.float32)

Untouched::

    import tensorflow as tf

    outputs, state = tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), dtype=tf.float32)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...syntax.expressions import boxed_constant
from ...syntax.source import one_line
from ...tf_api.name_tables import PARAMETERS
from ..base import Context, Finding

CODE = "NPU207"
_BIDIRECTIONAL = "tensorflow.nn.bidirectional_dynamic_rnn"
CALLS = frozenset({"tensorflow.nn.dynamic_rnn", _BIDIRECTIONAL})
_SIGNATURE = PARAMETERS["tensorflow.nn.dynamic_rnn"]


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if not runs_on_npu(context, call.node):
        return
    if name == _BIDIRECTIONAL:
        yield Finding(
            call.node,
            "the time steps run in two loops. For a fixed number of steps, write npu_rnn.npu_dynamic_rnn for each "
            "direction, the second with tf.reverse_sequence before and after it",
        )
        return
    bound = bind_arguments(call.node, _SIGNATURE)
    cell, inputs = (one_line(context.source.segment(bound.args[a])) if a in bound.args else a for a in _SIGNATURE[:2])
    time_first = boxed_constant(bound.args.get("time_major")) == (True,)
    time_major = inputs if time_first else f"tf.transpose({inputs}, [1, 0, 2])"
    back = "" if time_first else " and transpose back"
    yield Finding(
        call.node,
        "the time steps run in a loop. For a fixed number of steps, write npu_rnn.npu_dynamic_rnn({0}, {1}, ...){2}",
        cell,
        time_major,
        back,
    )
