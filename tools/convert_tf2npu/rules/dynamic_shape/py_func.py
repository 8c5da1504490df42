"""Python functions in the model.

A function called by ``tf.py_func`` runs in the Python process on the host, not on the NPU, and the shapes of its
results are unknown. In the input pipeline it is fine: with facts of ``npu-shim observe`` the rule does not report a
function that ran in functions of datasets only.

* Move the function into the one that ``dataset.map`` calls, and set the shapes of its results with ``set_shape``.
* Or write it with TensorFlow operations.
* Or, in TensorFlow 1, set ``mix_compile_mode=True`` on the session. This needs ``iterations_per_loop=1``. With batch
  normalization, it also needs ``with tf.compat.forward_compatibility_horizon(2019, 5, 1):`` around the model.

With facts, NPU101 writes ``mix_compile_mode=True`` for each ``tf.Session`` that ran such a function, in a program of one
file without batch normalization, Estimators and Keras.

Reported::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        score = tf.py_func(bleu, [predictions, labels], tf.float32)

Untouched::

    import tensorflow as tf

    dataset = tf.data.Dataset.range(8).map(lambda i: tf.py_func(load, [i], tf.float32))
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.host_operators import PYTHON, sessions_of_file
from ...analysis.mixed_computing import advice_for_batch_normalization
from ...analysis.tensorflow_version import is_tf2_program
from ...facts.kinds import OP, SESSION
from ...rewrite.session_config import writes_mixed_computing
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Message, Question

CODE = "NPU237"
CALLS = frozenset(
    "tensorflow." + name
    for name in """py_func py_function numpy_function
contrib.eager.py_func contrib.framework.py_func""".split()
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    seen = context.observed_at(CODE, OP, call.node)
    if runs_on_npu(context, call.node) and (seen is None or seen.only("in") != "data"):
        if seen is not None and seen.only("in") == "graph" and writes_mixed_computing(context, PYTHON):
            return
        others: Message | str = "or write it in TensorFlow"
        if not is_tf2_program(context):  # whose options have no mix_compile_mode
            others = Message(
                "write it in TensorFlow, or set mix_compile_mode=True{0}", advice_for_batch_normalization(context)
            )
        yield Finding(
            call.node,
            "{0} runs Python on the host, and its result has no static shape. Move it into dataset.map, {1}",
            last_part(name),
            others,
            asks=(Question(OP, call.node), *(Question(SESSION, session) for session in sessions_of_file(context))),
        )
