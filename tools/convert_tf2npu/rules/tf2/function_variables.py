"""Variables created inside tf.function.

TensorFlow traces a function again for each new signature, and a variable may be created in the first trace only. On the
NPU the function becomes one graph, which initializes no variables. Create variables, layers, optimizers and metrics
before the function, and use them in it. A variable under ``if self.v is None:`` is created once and not reported.

The method ``call`` of a layer or model is such a function, too. In eager code it creates variables anew in each call, so
that they are never trained. Create layers in ``__init__`` and weights in ``build``.

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

Reported::

    import tensorflow as tf

    class Head(tf.keras.layers.Layer):
        def call(self, x):
            scale = self.add_weight(name='scale', shape=[])
            return tf.keras.layers.Dense(3)(x) * scale

    @tf.function
    def predict(x):
        return Head()(x)

Reported::

    import tensorflow as tf

    with tf.device('/CPU:0'):
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

Untouched::

    import tensorflow as tf

    class Head(tf.keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(name='scale', shape=[])
            self.dense = tf.keras.layers.Dense(3)

        def call(self, x):
            if not self.built:
                self.build(x.shape)
            return self.dense(x) * self.scale

    @tf.function
    def predict(x, head):
        return head(x)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import enclosing_functions, is_conditional, is_traced, layer_call_functions
from ...semantics.model import Call
from ...semantics.module_index import Definition
from ...semantics.tf_types import METHODS_RUN_ONCE
from ...syntax.expressions import last_name
from ..base import Context, Finding

CODE = "NPU270"
_LAYERS = """AdditiveAttention BatchNormalization Bidirectional Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D
Conv3DTranspose ConvLSTM2D Convolution1D Convolution2D Convolution3D Dense DepthwiseConv2D Embedding GRU GRUCell
GroupNormalization LSTM LSTMCell LayerNormalization LocallyConnected1D LocallyConnected2D MultiHeadAttention PReLU
SeparableConv1D SeparableConv2D SimpleRNN SimpleRNNCell"""
CALLS = frozenset(
    ["tensorflow.Variable"]
    + ["tensorflow.keras.layers." + name for name in _LAYERS.split()]
    + ["tensorflow.keras.optimizers." + name for name in "Adadelta Adagrad Adam Adamax Ftrl Nadam RMSprop SGD".split()]
    + ["tensorflow.keras.metrics." + name for name in "Accuracy Mean SparseCategoricalAccuracy Sum".split()]
)
METHODS = frozenset({"add_weight", "add_variable"})
_INSIDE = frozenset({"tensorflow.GradientTape", "tensorflow.name_scope"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    yield from _report_created_variables(context, call)


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    if getattr(method.value, "id", "") == "self":
        yield from _report_created_variables(context, call, "Call it in build()")


def check_file(context: Context) -> Iterator[Finding]:
    """Report objects of the file's own layers."""
    names = context.names
    inside = names.once(layer_call_functions)
    if inside:
        for call in names.calls:
            if any(function in inside for function in enclosing_functions(names, call.node)):
                definition = names.definition(call.node.func, call.where)
                if definition is not None and _is_layer_with_variables(definition):
                    yield from _report_created_variables(context, call)


def _is_layer_with_variables(definition: Definition) -> bool:
    """Return True for a layer of the project that creates variables in ``__init__`` or ``build``."""
    node, names = definition
    return (
        isinstance(node, ast.ClassDef)
        and any(base.startswith("tensorflow.keras.") for base in names.outside_ancestors(node))
        and any(
            (last_name(call.node.func) in METHODS or names.resolve(call.node.func, call.where) in CALLS)
            and any(function.name in METHODS_RUN_ONCE for function in enclosing_functions(names, call.node))
            for call in names.calls
            if node in names.ancestors(call.node)
        )
    )


def _report_created_variables(context: Context, call: Call, fix: str = "") -> Iterator[Finding]:
    names = context.names
    inside = names.once(layer_call_functions)
    in_layer = any(function in inside for function in enclosing_functions(names, call.node))
    if not in_layer and not is_traced(names, call.node):
        return
    if _is_conditional_or_in_context(context, call) or is_in_test(context, call.node) or not is_tf2_program(context):
        return
    short = last_name(call.node.func)
    where = "each call of its layer" if in_layer else "a tf.function"
    fix = fix or ("Create it in __init__()" if in_layer else "Create it before the function")
    yield Finding(call.node, "{0} creates variables in {1}. {2}", short, where, fix)


def _is_conditional_or_in_context(context: Context, call: Call) -> bool:
    """Return True if a condition, a lambda or a context other than a tape or a name scope is around a call."""
    if is_conditional(context.names, call.node):
        return True
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, ast.FunctionDef):
            return False
        if isinstance(parent, ast.With) and not all(
            isinstance(item.context_expr, ast.Call) and context.called_names.get(item.context_expr) in _INSIDE
            for item in parent.items
        ):
            return True
    return False
