"""Calls not verified on the NPU.

The vendor's support list for TensorFlow 1.15 marks these calls as under analysis: they may work. Use the verified calls that
the finding names. The list for TensorFlow 2.6 supports them, so programs of TensorFlow 2 are not reported.

Reported::

    import tensorflow as tf

    generator = tf.random.experimental.Generator.from_seed(7)
    other = tf.random.experimental.Generator(state, 1)

Untouched::

    import tensorflow as tf

    noise = tf.random.stateless_uniform([8], seed=[1, 2])

Untouched::

    import tensorflow as tf

    generator = tf.random.experimental.Generator.from_seed(7)

    @tf.function
    def step(x):
        return x * generator.normal([8])
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.tensorflow_version import is_tf2_program
from ...semantics.model import Call
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding

CODE = "NPU215"
CALLS = calls_of_kind("unverified") | {
    "tensorflow.random.experimental.Generator.from_seed",
    "tensorflow.random.experimental.Generator.from_state",
    "tensorflow.random.experimental.Generator.from_non_deterministic_state",
}


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if runs_on_npu(context, call.node) and not is_tf2_program(context):
        yield Finding(
            call.node,
            "random generator objects are not verified on the NPU. "
            "Use tf.random.stateless_uniform, tf.random.stateless_normal or tf.random.uniform",
        )
