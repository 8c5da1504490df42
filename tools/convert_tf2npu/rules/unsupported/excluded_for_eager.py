"""Calls of eager code that the support list for TensorFlow 2.6 excludes.

The vendor's list for TensorFlow 2.6 advises against these calls. Use another way where there is one. Otherwise run one
step with them on an NPU before a long training. Names that published models train with on the NPU, such as ``tf.einsum``,
are not reported. Layers that prepare data, such as ``CategoryEncoding``, are reported if the model calls them, and not if
``dataset.map`` does. The rule reports each name once for each file.

Reported::

    import tensorflow as tf

    @tf.function
    def step(x):
        return tf.scan(lambda a, b: a + b, x)

Reported::

    import tensorflow as tf

    layer = tf.keras.layers.Conv3D(8, 3)

    @tf.function
    def step(x):
        return layer(x)

Reported::

    import tensorflow as tf

    encoded = tf.keras.layers.CategoryEncoding(9)(inputs)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(encoded))
    model.compile('adam', 'mse')
    model.fit(dataset.batch(32, drop_remainder=True))

Untouched::

    import tensorflow as tf

    def train(model: tf.keras.Model, dataset):
        encode = tf.keras.layers.CategoryEncoding(9)
        encoded = dataset.map(lambda x, y: (encode(x), y))
        model.fit(encoded.batch(32, drop_remainder=True))

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return tf.einsum('ij,jk->ik', x, weight)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return tf.cumsum(x)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_first_call, is_in_test, runs_on_npu
from ...analysis.tensorflow_version import is_eager_file, is_tf2_program
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.name_tables import EXCLUDED_IN_2
from ..base import Context, Finding, Message

CODE = "NPU282"
CALLS = EXCLUDED_IN_2
_ADVICE = {
    "enable_check_numerics": "Remove it",
    "scan": "Use tf.while_loop, or tf.cumsum for sums",
    "GaussianDropout": Message("Use {0}", "tf.keras.layers.Dropout"),
    "shared_embeddings": Message("Use {0}", "tf.keras.layers.Embedding"),
}
_PREPARE = frozenset({"CategoryEncoding", "CenterCrop", "RandomCrop"})
_COLUMN = "tensorflow.feature_column."


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short = last_part(name)
    if (
        (is_eager_file(context) or is_tf2_program(context))
        and runs_on_npu(context, call.node)
        and (short not in _PREPARE or _is_called(context, call))
        and is_first_call(context, call, frozenset({name}), context.names.tree)
        and not is_in_test(context, call.node)
    ):
        prepares = short in _PREPARE or name.startswith(_COLUMN)
        advice = _ADVICE.get(
            short,
            "Compute it in dataset.map" if prepares else "Run one step with it on an NPU before a long training",
        )
        yield Finding(call.node, "the support list for TensorFlow 2.6 excludes {0}. {1}", short, advice)


def _is_called(context: Context, call: Call) -> bool:
    """Return True if a model calls the layer that a call makes: ``CenterCrop(64, 64)(inputs)``."""
    parent = context.names.parents.get(call.node)
    return isinstance(parent, ast.Call) and parent.func is call.node
