"""Values of tensors read in the training step.

``loss.numpy()`` needs the value at once. In a tf.function a tensor has no value, so the call fails; in an eager step it
keeps the step from becoming a tf.function. Return the tensor from the step, and call ``numpy()`` outside.

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

from ...analysis.device_placement import in_test, runs_on_npu
from ...analysis.tensorflow_version import is_two
from ...analysis.tf_functions import functions_around, is_traced
from ...semantics.model import Call
from ...semantics.module_index import Names
from ...syntax.source import one_line
from ..base import Context, Finding, Result

CODE = "NPU272"
METHODS = frozenset({"numpy"})
_LOOPS = (ast.For, ast.While)


def check_method(context: Context, call: Call) -> Iterator[Result]:
    assert isinstance(call.node.func, ast.Attribute)
    if call.node.args or call.node.keywords or in_test(context, call.node):
        return
    names = context.names
    around = functions_around(names, call.node)
    if not around or not runs_on_npu(context, call.node):
        return
    if not is_traced(names, call.node) and around[0] not in names.once(_eager_steps):
        return
    if any(
        isinstance(parent, ast.If) and "executing_eagerly" in ast.dump(parent.test)
        for parent in around_ifs(names, call)
    ):
        return
    if is_two(context):
        tensor = one_line(context.source.segment(call.node.func.value))
        yield Finding(
            call.node, f"the training step reads the value of {tensor}. Return the tensor and call numpy() outside"
        )


def around_ifs(names: Names, call: Call) -> list[ast.If]:
    return [parent for parent in names.ancestors(call.node) if isinstance(parent, ast.If)]


def _eager_steps(names: Names) -> frozenset[ast.AST]:
    """Return the functions that compute and apply gradients once, outside of loops."""
    found: dict[str, set[ast.AST]] = {"tape": set(), "apply": set()}
    for call in names.calls:
        kind = (
            "apply"
            if getattr(call.node.func, "attr", "") == "apply_gradients"
            else "tape"
            if names.resolve(call.node.func, call.where) == "tensorflow.GradientTape"
            else ""
        )
        if kind:
            for parent in names.ancestors(call.node):
                if isinstance(parent, _LOOPS):
                    break
                if isinstance(parent, ast.FunctionDef):
                    found[kind].add(parent)
                    break
    return frozenset(found["tape"] & found["apply"])
