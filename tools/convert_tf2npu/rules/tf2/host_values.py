"""Values of tensors read in the training step.

``loss.numpy()`` needs the value at once. In a tf.function a tensor has no value, so the call fails; in an eager step it
keeps the step from becoming a tf.function. Return the tensor from the step, and call ``numpy()`` outside. The functions of
NumPy and ``bool()`` read the value in the same way. They are reported for certain tensors: the loss of ``tape.gradient``,
results of functions of TensorFlow, of a loss and of a Keras model. ``float()`` and ``int()`` of a tensor are casts in a
tf.function, so they are not reported.

Reported::

    import tensorflow as tf

    @tf.function
    def step(x):
        loss = tf.reduce_mean(model(x))
        return loss.numpy()

Reported::

    import tensorflow as tf

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss.numpy()

Reported::

    import numpy as np
    import tensorflow as tf

    @tf.function
    def step(x, y):
        error = tf.square(model(x) - y)
        return np.mean(error)

Reported::

    import numpy as np
    import tensorflow as tf

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return np.asarray(loss)

Untouched::

    import numpy as np
    import tensorflow as tf

    @tf.function
    def step(x):
        size = np.prod(x.shape) * float(np.log(2.0))
        return float(tf.reduce_mean(model(x))) / size

    def train():
        for x in dataset:
            print(np.mean(step(x)))

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return tf.reduce_mean(model(x))

    def train():
        for x in dataset:
            print(step(x).numpy())

Untouched::

    import tensorflow as tf

    def load(path):
        return read(path.numpy())

    @tf.function
    def parse(path):
        return tf.py_function(load, [path], tf.float32)

Untouched::

    import tensorflow as tf

    def train(dataset):
        for x, y in dataset:
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            print(loss.numpy())
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test, runs_on_npu
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tensors import is_tensor
from ...analysis.tf_functions import enclosing_functions, is_traced
from ...analysis.training_steps import training_step_functions
from ...semantics.model import Call
from ...semantics.module_index import Names
from ...syntax.source import one_line
from ..base import Context, Finding

CODE = "NPU272"
METHODS = frozenset({"numpy"})
_OF_SHAPES = frozenset({"numpy.ndim", "numpy.shape"})


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    if not call.node.args and not call.node.keywords:
        yield from _value_read_findings(context, call, method.value, "numpy()")


def check_file(context: Context) -> Iterator[Finding]:
    if "tf.function" not in context.source.text and "GradientTape" not in context.source.text:
        return
    for call in context.names.calls:
        reader = _reading_function(context.names, call)
        if reader and call.node.args and is_tensor(context, call.node.args[0], call.where):
            yield from _value_read_findings(context, call, call.node.args[0], reader)


def _reading_function(names: Names, call: Call) -> str:
    """Return the name of a function of Python or NumPy that reads the values of its argument, or ""."""
    function = call.node.func
    if isinstance(function, ast.Name) and function.id == "bool" and names.bindings_of_name("bool", call.where) is None:
        return "bool()"
    name = names.resolve(function, call.where) or ""
    return f"{name}()" if name.startswith("numpy.") and name.count(".") == 1 and name not in _OF_SHAPES else ""


def _value_read_findings(context: Context, call: Call, tensor: ast.expr, reader: str) -> Iterator[Finding]:
    names = context.names
    around = enclosing_functions(names, call.node)
    if (
        not around
        or is_in_test(context, call.node)
        or not runs_on_npu(context, call.node)
        or not is_traced(names, call.node)
        and around[0] not in names.once(training_step_functions)
        or any("executing_eagerly" in ast.dump(branch.test) for branch in _ifs_around(names, call))
        or not is_tf2_program(context)
    ):
        return
    text = one_line(context.source.segment(tensor))
    yield Finding(
        call.node, "the training step reads the value of {0}. Return the tensor and call {1} outside", text, reader
    )


def _ifs_around(names: Names, call: Call) -> list[ast.If]:
    return [parent for parent in names.ancestors(call.node) if isinstance(parent, ast.If)]
