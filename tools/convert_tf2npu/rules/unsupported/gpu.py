"""Calls that need a GPU.

These calls have kernels for NVIDIA GPUs only, so the script fails on an NPU and on a CPU. Use the form that runs on
all devices:

* ``tf.keras.layers.LSTM`` and ``GRU`` with the given arguments load the weights of ``CuDNNLSTM`` and ``CuDNNGRU``.
* ``CudnnCompatibleLSTMCell`` and ``CudnnCompatibleGRUCell`` in ``tf.nn.dynamic_rnn`` read the checkpoints of
  ``CudnnLSTM`` and ``CudnnGRU``.
* Instead of ``multi_gpu_model`` use the model itself and one process for each device.

Reported::

    import tensorflow as tf

    x = tf.keras.layers.CuDNNLSTM(128, return_sequences=True)(x)

Reported::

    import tensorflow as tf

    lstm = tf.contrib.cudnn_rnn.CudnnLSTM(2, 512)
    model = tf.keras.utils.multi_gpu_model(model, gpus=4)

Untouched::

    import tensorflow as tf

    if tf.test.is_gpu_available():
        layer = tf.keras.layers.CuDNNLSTM(128)
    else:
        layer = tf.keras.layers.LSTM(128)

Untouched::

    import tensorflow as tf

    cell = tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(512)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.support import names_of
from ..base import Context, Finding, Result

CODE = "NPU212"
CALLS = names_of("gpu")
_REPLACEMENTS = {
    "CuDNNLSTM": "tf.keras.layers.LSTM(..., recurrent_activation='sigmoid')",
    "CuDNNGRU": "tf.keras.layers.GRU(..., recurrent_activation='sigmoid', reset_after=True)",
    "CudnnLSTM": "tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell in tf.nn.dynamic_rnn",
    "CudnnGRU": "tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell in tf.nn.dynamic_rnn",
    "multi_gpu_model": "the model itself and start one process for each device",
}
_GUARD = re.compile(r"gpu|cuda|cudnn", re.IGNORECASE)


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    child: ast.AST = call.node
    for parent in context.names.ancestors(call.node):
        if (
            isinstance(parent, (ast.If, ast.IfExp))
            and child is not parent.test
            and _GUARD.search(context.source.segment(parent.test))
        ):
            return
        child = parent
    short = last_part(name)
    replacement = _REPLACEMENTS.get(short, "tf.nn.dynamic_rnn or another operation that is not for GPUs only")
    yield Finding(call.node, f"{short} runs on NVIDIA GPUs only. Use {replacement}")
