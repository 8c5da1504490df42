"""Experimental calls of TensorFlow Lite.

These calls mark or convert a graph for TensorFlow Lite. The NPU's compiler does not support the marks, and training
does not need them. Move them into the script that exports the model.

Reported::

    import tensorflow as tf

    cell = tf.lite.experimental.nn.TFLiteLSTMCell(64)

Untouched::

    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(path)
"""

from __future__ import annotations

from typing import Iterator

from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding, Message

CODE = "NPU213"
CALLS = calls_of_kind("lite")
_REPLACEMENTS = {
    "TFLiteLSTMCell": "tf.nn.rnn_cell.LSTMCell",
    "TfLiteRNNCell": "tf.nn.rnn_cell.BasicRNNCell",
    "dynamic_rnn": "tf.nn.dynamic_rnn",
}


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short = last_part(name)
    replacement = _REPLACEMENTS.get(short)
    advice = (
        Message("Use {0} in the training graph", replacement)
        if replacement
        else "Move it into the script that exports the model"
    )
    yield Finding(call.node, "{0} is for TensorFlow Lite, not for the NPU. {1}", short, advice)
