"""Run Keras models as functions.

With ``run_eagerly=True`` Keras runs each operation of the model by itself, and the NPU compiles and starts each by
itself. The switch is for debugging. The rule sets it to False for models that consist of layers alone. It reports other
models, whose methods may contain code that cannot run in a tf.function, variables and parameters that are True by
default, and ``tf.config.run_functions_eagerly(True)``.

Before::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse', run_eagerly=True)

    @tf.function
    def predict(x):
        return model(x)

After::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse', run_eagerly=False)

    @tf.function
    def predict(x):
        return model(x)

Reported::

    import tensorflow as tf

    def build(optimizer, run_eagerly=True):
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile(optimizer, 'mse', run_eagerly=run_eagerly)
        return model

    @tf.function
    def predict(model, x):
        return model(x)

Untouched::

    import tensorflow as tf

    def build(optimizer, run_eagerly=False):
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile(optimizer, 'mse', run_eagerly=run_eagerly)
        return model

    @tf.function
    def predict(model, x):
        return model(x)

Untouched::

    import tensorflow as tf

    def build():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse', run_eagerly=False)
        return model

    @tf.function
    def predict(x):
        return build()(x)

Reported::

    import tensorflow as tf

    class Net(tf.keras.Model):
        def call(self, x):
            return x

    def build():
        net = Net()
        net.compile('adam', 'mse', run_eagerly=True)
        return net

    def main():
        build().fit(x, y)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.tensorflow_version import is_tf2_program
from ...rewrite.call_edits import edit_to_rename
from ...semantics.call_sites import default_of_parameter
from ...semantics.model import Call
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, values_of
from ...syntax.source import one_line
from ...syntax.words import has_words
from ..base import Change, Context, Finding

CODE = "NPU122"
_SWITCHES = frozenset(
    {"tensorflow.config.run_functions_eagerly", "tensorflow.config.experimental_run_functions_eagerly"}
)
CALLS = _SWITCHES
METHODS = frozenset({"compile"})
_LAYERS_ALONE = frozenset({"tensorflow.keras.Sequential", "tensorflow.keras.Model"})
_PYTHON = (".numpy(", "py_function", "numpy_function", "pdb", "breakpoint(")


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    values = values_of(call.node)
    if values and boxed_constant(values[0]) == (True,) and not is_in_test(context, call.node):
        yield Finding(call.node, "all functions of the program run operation by operation. Remove this call")


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    switch = next((keyword.value for keyword in call.node.keywords if keyword.arg == "run_eagerly"), None)
    if (
        switch is None
        or not _is_switched_on(context, switch, call)
        or is_in_test(context, call.node)
        or not is_tf2_program(context)
    ):
        return
    if context.types.type_of(method.value, call.where) != Type.MODEL:
        return
    if boxed_constant(switch) is None:
        text = one_line(context.source.segment(switch))
        yield Finding(call.node, "the model runs operation by operation if {0} is True. Make it False by default", text)
    elif _is_of_layers(context, call):
        yield Change(call.node, "model run as a function", (edit_to_rename(context.source, switch, "False"),))
    else:
        yield Finding(call.node, "the model runs operation by operation. Pass run_eagerly=False")


def _is_switched_on(context: Context, switch: ast.expr, call: Call) -> bool:
    """Return True if a switch is True, if a variable is, or if it is the default of a parameter that is not passed."""
    sources = origins(switch, call.where, context.names)
    if sources and all(boxed_constant(origin.node) == (True,) for origin in sources):
        return True
    parameter = context.names.only_binding(switch, call.where, "arg")
    is_unknown = len(sources) == 1 and sources[0].node is switch
    return is_unknown and parameter is not None and boxed_constant(default_of_parameter(parameter)) == (True,)


def _is_of_layers(context: Context, call: Call) -> bool:
    """Return True if a model consists of layers, and no code of the file needs Python values."""
    assert isinstance(call.node.func, ast.Attribute)
    if has_words(context.source.text, _PYTHON):
        return False
    sources = origins(call.node.func.value, call.where, context.names)
    return bool(sources) and all(
        isinstance(source.node, ast.Call) and source.resolve() in _LAYERS_ALONE for source in sources
    )
