"""Variables created in the input pipeline.

A function that ``dataset.map`` calls runs on the host, in its own graph. A variable created in it is never
initialized on the NPU, and the run fails with an error about an uninitialized variable. ``tf.keras.backend.zeros``
and similar functions create variables too. Use a constant.

Reported::

    import tensorflow as tf

    def parse(record):
        mean = tf.Variable([0.5, 0.4, 0.3])
        return record - mean

    dataset = tf.data.TFRecordDataset(files).map(parse)

Reported::

    import tensorflow as tf
    from tensorflow.keras import backend as K

    dataset = tf.data.Dataset.range(8).map(lambda i: K.zeros([3]))

Untouched::

    import tensorflow as tf

    def parse(record):
        mean = tf.constant([0.5, 0.4, 0.3])
        return record - mean

    dataset = tf.data.TFRecordDataset(files).map(parse)
    weight = tf.Variable(0.5)

Untouched::

    import tensorflow as tf

    weights = pool.map(lambda i: tf.Variable(i))
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import in_map_function
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU224"
_REPLACEMENTS = {
    "tensorflow.Variable": "tf.constant",
    "tensorflow.get_variable": "tf.constant",
    "tensorflow.keras.backend.variable": "tf.constant",
    "tensorflow.keras.backend.zeros": "tf.zeros",
    "tensorflow.keras.backend.ones": "tf.ones",
    "tensorflow.keras.backend.eye": "tf.eye",
    "tensorflow.keras.backend.random_uniform_variable": "tf.random.uniform",
    "tensorflow.keras.backend.random_normal_variable": "tf.random.normal",
}
CALLS = frozenset(_REPLACEMENTS)


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    if in_map_function(context, call.node):
        yield Finding(
            call.node,
            "{0} creates a variable in the input pipeline, which the NPU never initializes. Use {1}",
            last_part(name),
            _REPLACEMENTS[name],
        )
