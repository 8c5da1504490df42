"""Calls that enable eager execution.

The NPU executes compiled graphs. With eager execution of TensorFlow 1 each operation runs on the host and none on the
NPU. Build a graph instead: use a session, an Estimator or Keras in graph mode. ``tf.executing_eagerly()`` and programs
of TensorFlow 2 are not reported.

Reported::

    import tensorflow as tf

    tf.enable_eager_execution()

Reported::

    import tensorflow.contrib.eager as tfe

    tfe.enable_eager_execution()

Untouched::

    import tensorflow as tf

    def main():
        tf.compat.v1.enable_v2_behavior()
        with tf.GradientTape() as tape:
            loss = model(x)

Untouched::

    import tensorflow.compat.v2 as tf

    tf.enable_v2_behavior()
    total = tf.reduce_sum(tf.ones([2, 3]))

Untouched::

    import tensorflow as tf

    if tf.executing_eagerly():
        print(loss.numpy())
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.tensorflow_version import is_tf2_program
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding

CODE = "NPU210"
CALLS = calls_of_kind("eager")


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short = last_part(name)
    if not is_in_test(context, call.node) and not is_tf2_program(context):
        yield Finding(
            call.node,
            "{0} runs all operations on the host, none on the NPU. "
            "Remove it and build a graph: use a session, an Estimator or Keras in graph mode",
            short,
        )
