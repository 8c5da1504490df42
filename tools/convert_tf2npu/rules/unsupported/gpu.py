"""Calls that need a GPU.

These calls have kernels for NVIDIA GPUs only, so the script fails on an NPU. Without an NPU npu_shim computes the layers
of cuDNN, and the script trains on the CPU. Use the form that runs on all devices:

* ``tf.keras.layers.LSTM`` and ``GRU`` with the given arguments load the weights of ``CuDNNLSTM`` and ``CuDNNGRU``.
* ``CudnnCompatibleLSTMCell`` and ``CudnnCompatibleGRUCell`` in ``tf.nn.dynamic_rnn`` read the checkpoints of
  ``CudnnLSTM`` and ``CudnnGRU``.
* Instead of ``multi_gpu_model`` use the model itself and one process for each device.
* NCCL and ``tf.contrib.all_reduce`` add tensors of several GPUs of one process. A process for the NPU has one device:
  start one rank per device. The optimizer averages the gradients (``-d tf_strategy``); use
  ``hccl_ops.allreduce(x, 'sum')`` for other tensors.

A call under a test for GPUs is not reported, because it does not run. A switch such as ``use_cudnn`` is no test.
``multi_gpu_model`` under a number of GPUs that a flag sets is reported.

Reported::

    import tensorflow as tf

    x = tf.keras.layers.CuDNNLSTM(128, return_sequences=True)(x)

Reported::

    import tensorflow as tf

    lstm = tf.contrib.cudnn_rnn.CudnnLSTM(2, 512)
    model = tf.keras.utils.multi_gpu_model(model, gpus=4)

Reported::

    import tensorflow as tf
    from tensorflow.contrib import nccl

    gradients = nccl.all_sum(gradients)

Reported::

    from tensorflow import keras

    parser.add_argument('--gpus', type=int, default=1)
    args = parser.parse_args()
    if args.gpus > 1:
        model = keras.utils.multi_gpu_model(model, gpus=args.gpus)

Reported::

    import tensorflow as tf

    def encoder(x, use_cudnn):
        if use_cudnn:
            return tf.keras.layers.CuDNNLSTM(128)(x)
        return tf.keras.layers.LSTM(128)(x)

Untouched::

    import tensorflow as tf

    use_cudnn = tf.test.is_gpu_available()
    layer = tf.keras.layers.CuDNNLSTM(128) if use_cudnn else tf.keras.layers.LSTM(128)

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

from ...analysis.command_line_flags import flags_read_by
from ...analysis.gpu_tests import ASKING
from ...semantics.model import Call, Where
from ...semantics.value_flow import origins
from ...syntax.expressions import last_part
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding

CODE = "NPU212"
_NCCL = frozenset("all_sum all_min all_max all_prod reduce_sum broadcast".split())
CALLS = (
    calls_of_kind("gpu")
    | {"keras.utils.multi_gpu_model"}
    | {home + name for home in ("tensorflow.contrib.nccl.", "tensorflow.python.ops.nccl_ops.") for name in _NCCL}
    | {
        f"{home}build_{name}_all_reduce"
        for home in ("tensorflow.contrib.all_reduce.", "tensorflow.python.distribute.all_reduce.")
        for name in """nccl ring recursive_hd shuffle nccl_then_ring nccl_then_recursive_hd nccl_then_shuffle
shuffle_then_ring shuffle_then_shuffle""".split()
    }
)
_REPLACEMENTS = {
    "CuDNNLSTM": "tf.keras.layers.LSTM(..., recurrent_activation='sigmoid')",
    "CuDNNGRU": "tf.keras.layers.GRU(..., recurrent_activation='sigmoid', reset_after=True)",
    "CudnnLSTM": "tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell in tf.nn.dynamic_rnn",
    "CudnnGRU": "tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell in tf.nn.dynamic_rnn",
    "multi_gpu_model": "the model itself and start one process for each device",
}
# Words of tests for GPUs, and of their number.
_GUARD = re.compile(
    r"avail|(?:has|have|is|built_with|with)_?(?:gpu|cuda|cudnn)|(?:gpu|cuda)_is|gpus|(?:num|n|count)_?gpu|gpu_?(?:num|count|device)",
    re.IGNORECASE,
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short = last_part(name)
    child: ast.AST = call.node
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
            if _asks_for_gpus(context, parent.test, call.where) and not (
                short == "multi_gpu_model" and _compares_flag(context, parent.test, call.where)
            ):
                return
        child = parent
    if "nccl" in (name) or short.endswith("_all_reduce"):
        yield Finding(
            call.node,
            "{0} adds tensors of several GPUs of one process. Start one rank per device and use "
            "hccl_ops.allreduce(x, 'sum')",
            short,
        )
        return
    replacement = _REPLACEMENTS.get(short, "tf.nn.dynamic_rnn or another operation that is not for GPUs only")
    yield Finding(call.node, "{0} runs on NVIDIA GPUs only. Use {1}", short, replacement)


def _asks_for_gpus(context: Context, test: ast.expr, where: Where) -> bool:
    """Return True if a test asks for GPUs. A switch such as ``use_cudnn`` does not, unless the file sets it by a test."""
    if _GUARD.search(context.source.segment(test)):
        return True
    sources = [
        origin
        for part in ast.walk(test)
        if isinstance(part, ast.Name)
        for origin in origins(part, where, context.names)
    ]
    return any(
        isinstance(part, ast.Call) and source.names.resolve(part.func, source.names.place(part)) in ASKING
        for source in sources
        for part in ast.walk(source.node)
    )


def _compares_flag(context: Context, test: ast.expr, where: Where) -> bool:
    """Return True if a test compares a number that a flag sets."""
    left = origins(test.left, where, context.names) if isinstance(test, ast.Compare) else []
    return len(left) == 1 and isinstance(left[0].node, ast.Attribute) and bool(flags_read_by(context, [left[0].node]))
