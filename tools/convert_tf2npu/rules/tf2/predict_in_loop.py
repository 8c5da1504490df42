"""model.predict in a loop.

``predict`` makes a dataset, splits it into batches and copies the results to the host in each call. In a loop of small
batches this takes longer than the model. Call the model instead, ``model(x, training=False)``, in a function with
``@tf.function``, or pass all inputs to one ``predict``.

Reported::

    import tensorflow as tf

    def play(model: tf.keras.Model, steps):
        for step in range(steps):
            action = model.predict(state)
            state = world.step(action)
            model.train_on_batch(state, action)

Reported::

    import tensorflow as tf

    def replay(model: tf.keras.Model, memory):
        for state, reward, following in memory:
            target = reward + 0.95 * model.predict(following).max()
            model.fit(state, target, epochs=1, verbose=0)

Untouched::

    import tensorflow as tf

    def judge(model: tf.keras.Model, images):
        return model.predict(images)

Untouched::

    import tensorflow as tf

    def folds(model: tf.keras.Model, parts):
        for train, test in parts:
            model.fit(train)
            scores.append(model.predict(test))

Untouched::

    import tensorflow as tf

    tf.random.set_seed(1)
    for path in paths:
        model = tf.keras.models.load_model(path)
        results.append(model.predict(images))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.keras_methods import is_keras_method
from ...analysis.tensorflow_version import is_tf2_program
from ...semantics.model import Call
from ...syntax.expressions import boxed_constant
from ..base import Context, Finding

CODE = "NPU273"
METHODS = frozenset({"predict"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    model = method.value
    loop = _outermost_loop(context, call.node)
    if (
        loop is None
        or not is_keras_method(context, call)
        or _is_made_in(loop, model)
        or any(map(_trains_epochs, ast.walk(loop)))
        or is_in_test(context, call.node)
        or not is_tf2_program(context)
    ):
        return
    text = context.source.segment(model)
    yield Finding(
        call.node, "predict() in a loop makes a dataset each time. Call {0}(x, training=False) in a tf.function", text
    )


def _trains_epochs(node: ast.AST) -> bool:
    """Return True for a call of fit, unless it is one of ``epochs=1``: a step of reinforcement learning."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") not in ("fit", "fit_generator"):
        return False
    return not any(keyword.arg == "epochs" and boxed_constant(keyword.value) == (1,) for keyword in node.keywords)


def _outermost_loop(context: Context, node: ast.AST) -> ast.AST | None:
    """Return the outermost loop around an expression, in its function."""
    loop = None
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.For) and isinstance(parent.iter, (ast.List, ast.Tuple)):
            continue  # over a few arrays
        if isinstance(parent, (ast.For, ast.While)):
            loop = parent
        if isinstance(parent, _FUNCTIONS):
            break
    return loop


def _is_made_in(loop: ast.AST, model: ast.expr) -> bool:
    """Return True if a loop binds the model, as a loop over models does."""
    root = model
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == getattr(root, "id", "")
        for node in ast.walk(loop)
    )
