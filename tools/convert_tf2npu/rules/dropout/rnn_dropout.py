"""Dropout around the cell of a recurrent layer.

A ``DropoutWrapper`` drops the inputs and outputs of each time step with an operation of its own. ``npu_ops.dropout`` on
the inputs or outputs of the whole layer drops them with the same probability, in one operation. Dropout of the state,
``variational_recurrent`` and the cells inside a ``MultiRNNCell`` have no such form. They are not reported, and nothing
is in a file that makes a ``MultiRNNCell``.

Reported::

    import tensorflow as tf

    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(64), output_keep_prob=0.5)

Untouched::

    import tensorflow as tf

    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(64), state_keep_prob=0.5)

Untouched::

    import tensorflow as tf

    wrapped = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(64), output_keep_prob=0.5)
    stack = tf.nn.rnn_cell.MultiRNNCell([wrapped, tf.nn.rnn_cell.LSTMCell(64)])
"""

from __future__ import annotations

from typing import Iterator

from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...syntax.expressions import constant_or
from ...syntax.source import one_line
from ..base import Context, Finding, Message

CODE = "NPU246"
CALLS = frozenset({"tensorflow.nn.rnn_cell.DropoutWrapper", "tensorflow.contrib.rnn.DropoutWrapper"})
_STACKS = frozenset({"tensorflow.nn.rnn_cell.MultiRNNCell", "tensorflow.contrib.rnn.MultiRNNCell"})
_SIGNATURE = ("cell", "input_keep_prob", "output_keep_prob", "state_keep_prob", "variational_recurrent")


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    given = bind_arguments(call.node, _SIGNATURE)
    if not _STACKS.isdisjoint(context.called_names.values()):
        return
    if given.hidden or given.is_given("state_keep_prob") or given.is_given("variational_recurrent"):
        return
    dropped = []
    for part in ("input", "output"):
        keep = given.args.get(part + "_keep_prob")
        if keep is not None and constant_or(keep, None) not in (1, 1.0):
            dropped.append(f"{part}s, keep_prob={one_line(context.source.segment(keep))}")
    if dropped:
        first, last = dropped[0], dropped[-1]
        whole = f"npu_ops.dropout({first})"
        if first is not last:
            whole = Message("npu_ops.dropout({0}) and npu_ops.dropout({1})", first, last)
        yield Finding(
            call.node, "this drops in each time step. Use the cell itself, and for the whole layer write {0}", whole
        )
