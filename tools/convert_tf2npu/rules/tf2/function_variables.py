"""Variables created inside tf.function.

TensorFlow traces a function again for each new signature, and a variable may be created in the first trace only. On the
NPU the function becomes one graph, which initializes no variables. Create variables, layers, optimizers and metrics
before the function, and use them in it. A variable under ``if self.v is None:`` is created once and not reported.

Reported::

    import tensorflow as tf

    @tf.function
    def step(x):
        total = tf.Variable(0.0)
        total.assign_add(tf.reduce_sum(x))
        return total

Reported::

    import tensorflow as tf

    @tf.function
    def forward(x):
        return tf.keras.layers.Dense(3)(x)

Untouched::

    import tensorflow as tf

    total = tf.Variable(0.0)

    @tf.function
    def step(x):
        return total.assign_add(tf.reduce_sum(x))

Untouched::

    import tensorflow as tf

    class Sum(tf.Module):
        def __init__(self):
            self.total = None

        @tf.function
        def step(self, x):
            if self.total is None:
                self.total = tf.Variable(0.0)
            return self.total.assign_add(x)

Untouched::

    import tensorflow as tf

    @tf.function
    def forward(x):
        return tf.keras.layers.Flatten()(x)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        with tf.init_scope():
            total = tf.Variable(0.0)
        return total.assign_add(x)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.tensorflow_version import is_two
from ...analysis.tf_functions import is_traced
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU270"
_LAYERS = """BatchNormalization Bidirectional Conv1D Conv2D Conv2DTranspose Conv3D Dense DepthwiseConv2D Embedding GRU
GRUCell LSTM LSTMCell LayerNormalization MultiHeadAttention SeparableConv2D SimpleRNN"""
CALLS = frozenset(
    ["tensorflow.Variable"]
    + ["tensorflow.keras.layers." + name for name in _LAYERS.split()]
    + ["tensorflow.keras.optimizers." + name for name in "Adadelta Adagrad Adam Adamax Ftrl Nadam RMSprop SGD".split()]
    + ["tensorflow.keras.metrics." + name for name in "Accuracy Mean SparseCategoricalAccuracy Sum".split()]
)

_INSIDE = frozenset({"tensorflow.GradientTape", "tensorflow.name_scope"})


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    names = context.names
    if (
        not is_traced(names, call.node)
        or _may_be_elsewhere(context, call)
        or in_test(context, call.node)
        or not is_two(context)
    ):
        return
    short = last_part(name)
    yield Finding(call.node, f"{short} creates variables in a tf.function. Create it before the function")


def _may_be_elsewhere(context: Context, call: Call) -> bool:
    """Return True if a condition, a lambda or a context other than a tape or a name scope is around a call."""
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, ast.FunctionDef):
            return False
        if isinstance(parent, (ast.If, ast.IfExp, ast.Lambda)):
            return True
        if isinstance(parent, ast.With) and not all(
            isinstance(item.context_expr, ast.Call) and context.called.get(item.context_expr) in _INSIDE
            for item in parent.items
        ):
            return True
    return False
