"""Training steps outside tf.function.

Outside tf.function TensorFlow runs each operation by itself, and the NPU compiles and starts it by itself, which takes
many times as long as one graph. Put the step into a function with ``@tf.function``. Methods that Keras compiles
(``train_step``), and functions that a tf.function calls, are not reported.

Reported::

    import tensorflow as tf

    for x, y in dataset:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

Untouched::

    import tensorflow as tf

    def update(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def step(x, y):
        update(x, y)
        update(y, x)

Untouched::

    import tensorflow as tf

    class Net(tf.keras.Model):
        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = self.compute_loss(data)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))

Untouched::

    import tensorflow as tf

    def update(x):
        with tf.GradientTape() as tape:
            loss = loss_of(model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def compiled():
        return tf.function(update)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.tensorflow_version import is_two
from ...semantics.mentions import mentions
from ...semantics.module_index import Names
from ..base import Context, Finding, Result

CODE = "NPU247"
_FUNCTION = "tensorflow.function"
_COMPILED_METHODS = frozenset({"train_step", "test_step", "predict_step", "call"})


def check_file(context: Context) -> Iterator[Result]:
    text = context.source.text
    if "GradientTape" not in text or "apply_gradients" not in text or not is_two(context):
        return
    reported: set[ast.AST | None] = set()
    for call in context.names.calls:
        if context.called.get(call.node) != "tensorflow.GradientTape" or in_test(context, call.node):
            continue
        around = _functions(context.names, call.node)
        innermost = around[0] if around else None
        if innermost in reported or any(_is_compiled(context.names, function, set()) for function in around):
            continue
        reported.add(innermost)
        yield Finding(
            call.node,
            "this training step runs operation by operation. Put it into a function with @tf.function",
        )


def _functions(names: Names, node: ast.AST) -> list[ast.FunctionDef]:
    return [parent for parent in names.ancestors(node) if isinstance(parent, ast.FunctionDef)]


def _is_compiled(names: Names, function: ast.FunctionDef, seen: set[ast.AST]) -> bool:
    """Return True if a function may run inside a tf.function."""
    if function in seen:
        return False
    seen.add(function)
    where = names.places[function]
    for decorator in function.decorator_list:
        if any(names.resolve(part, where) == _FUNCTION for part in ast.walk(decorator)):
            return True
    parent = names.parents.get(function)
    if isinstance(parent, ast.ClassDef) and function.name in _COMPILED_METHODS:
        return True
    found = mentions(function, names)
    if found is None:
        return True  # in a file that cannot be read
    for mention in found:
        user = mention.names
        call = user.parents.get(mention.node)
        if not isinstance(call, ast.Call) or mention.node is not call.func:
            return True  # passed to other code, as to tf.function or strategy.run
        if any(_is_compiled(user, around, seen) for around in _functions(user, mention.node)):
            return True
    return False
