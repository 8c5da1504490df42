"""Keras training on arrays, whose last batch may be smaller.

``fit(x, y)`` cuts arrays into batches. If the number of rows is no multiple of the batch size, the last batch is
smaller, and the NPU compiles the model for it, too. Train on a multiple: ``n = len(x) // 32 * 32`` and
``model.fit(x[:n], y[:n])``, or on a dataset with ``batch(32, drop_remainder=True)``. ``evaluate`` and ``predict`` keep
all rows.

Reported::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels, batch_size=32, validation_split=0.1)

Untouched::

    import tensorflow as tf

    def train(model: tf.keras.Model, images, labels, n):
        model.fit(images[:n], labels[:n], batch_size=32)
        model.evaluate(images, labels)

Untouched::

    import tensorflow.compat.v1 as tf

    def train(model: tf.keras.Model, dataset):
        model.fit(dataset)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.tensorflow_version import is_two
from ...semantics.model import Call
from ...semantics.signatures import bind
from ...semantics.tf_types import Type
from ..base import Context, Finding, Result

CODE = "NPU248"
METHODS = frozenset({"fit"})


def check_method(context: Context, call: Call) -> Iterator[Result]:
    assert isinstance(call.node.func, ast.Attribute)
    bound = bind(call.node, ("x", "y", "batch_size"))
    rows = bound.args.get("y")
    if (
        rows is None
        or isinstance(rows, ast.Subscript)
        or "steps_per_epoch" in {keyword.arg for keyword in call.node.keywords}
        or context.types.of(call.node.func.value, call.where) != Type.MODEL
        or in_test(context, call.node)
        or not is_two(context)
    ):
        return
    yield Finding(
        call.node,
        "the last batch of fit() may be smaller, and the NPU compiles it, too. Pass arrays whose length is a multiple "
        "of the batch size, such as x[:n]",
    )
