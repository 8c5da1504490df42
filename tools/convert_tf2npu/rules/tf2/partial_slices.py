"""Loops over arrays whose last slice is smaller.

``for i in range(0, len(x), 64): step(x[i:i + 64])`` passes a smaller last batch if 64 does not divide the number of rows.
A tf.function is traced again for its shape, and the NPU compiles it again. ``train_on_batch`` has the same effect. Drop
this batch in training. In evaluation and prediction keep it: ``npu_shim.data.padded_batches`` pads it and returns the
number of real rows.

It makes no difference if a generator of the file yields the slices, if the slice is one of shuffled row numbers, or if
the loop is ``for k in range(ceil(n / 64))`` or a ``while`` loop.

The rule also reports a slice that grows or shrinks with the loop, such as ``x[:i]``. It has another shape in each
iteration. Pad it to the longest length, with a mask.

Reported::

    import tensorflow as tf

    def train(model: tf.keras.Model, x, y):
        for i in range(0, len(x), 64):
            model.train_on_batch(x[i:i + 64], y[i:i + 64])

Reported::

    import tensorflow as tf

    @tf.function
    def step(images):
        return model(images)

    for i in range(0, len(images), size):
        batch = images[i:i + size]
        step(batch)

Reported::

    import tensorflow as tf

    @tf.function
    def step(tokens):
        return model(tokens)

    for i in range(1, 20):
        step(tokens[:, :i])

Untouched::

    import tensorflow as tf

    def train(model: tf.keras.Model, x, y):
        for i in range(0, len(x) - 64 + 1, 64):
            model.train_on_batch(x[i:i + 64], y[i:i + 64])

Untouched::

    import tensorflow as tf

    @tf.function
    def step(images):
        return model(images)

    def train(images, size):
        for i in range(len(images) // size):
            step(images[i * size:(i + 1) * size])

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    def show(images):
        for i in range(0, len(images), 64):
            draw(images[i:i + 64])
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.keras_methods import is_keras_method
from ...analysis.slices import Slice, full_range, growing_slice, slice_of, text_of
from ...analysis.tensorflow_version import is_two
from ...analysis.tf_functions import function_call, is_traced, may_call_functions
from ...semantics.model import Call
from ...syntax.expressions import last_name
from ..base import Context, Finding, Result

CODE = "NPU276"
_TRAINS = "train_on_batch"
_ON_BATCH = frozenset({_TRAINS, "test_on_batch", "predict_on_batch"})


def check_file(context: Context) -> Iterator[Result]:
    text = context.source.text
    if not ("range" in text or "while" in text) or not ("_on_batch" in text or may_call_functions(context.names, text)):
        return
    for call in context.names.calls:
        for value in [*call.node.args, *(keyword.value for keyword in call.node.keywords)]:
            bound = _bound(context, call, value)
            piece = slice_of(context, call, bound) or _yielded(context, call, value)
            grows = piece is None and growing_slice(context, bound)
            if piece is None and not grows or not _is_step(context, call):
                continue
            if grows and not in_test(context, call.node) and is_two(context):
                yield Finding(
                    call.node,
                    "another shape in each iteration: the NPU recompiles for each. Pad the slice to one length",
                )
            elif piece is not None and not in_test(context, call.node) and is_two(context):
                fix = (
                    f"In training drop it: {full_range(context, piece)}"
                    if _is_training(context, call)
                    else f"Use npu_shim.data.padded_batches({text_of(context, piece.whole)}, "
                    f"{text_of(context, piece.size)}) and keep [:real] of the results"
                )
                yield Finding(call.node, f"last partial batch: the NPU recompiles for it. {fix}")
            break


def _bound(context: Context, call: Call, value: ast.expr) -> ast.expr:
    """Return the slice that an argument names, or the argument."""
    bindings = context.names.lookup(value.id, call.where) or [] if isinstance(value, ast.Name) else []
    if len(bindings) == 1 and bindings[0].kind == "value" and isinstance(bindings[0].node, ast.expr):
        return bindings[0].node
    return value


def _yielded(context: Context, call: Call, value: ast.expr) -> Slice | None:
    """Return the slice that a generator of the file yields for the variable of a loop: ``for x, y in batches(...)``."""
    names = context.names
    loops = (p for p in names.ancestors(call.node) if isinstance(p, ast.For) and isinstance(value, ast.Name))
    for loop in loops:
        if not any(
            isinstance(part, ast.Name) and part.id == getattr(value, "id", "") for part in ast.walk(loop.target)
        ):
            continue
        over: ast.expr = loop.iter
        while isinstance(over, ast.Call) and last_name(over.func) in ("enumerate", "tqdm") and over.args:
            over = over.args[0]
        made = names.definition(over.func, names.place(over)) if isinstance(over, ast.Call) else None
        if made is None or made.names is not names:
            return None
        for node in ast.walk(made.node):
            if isinstance(node, ast.Yield) and node.value is not None:
                at = Call(call.node, names.place(node))
                for part in getattr(node.value, "elts", [node.value]):
                    piece = slice_of(context, at, _bound(context, at, part))
                    if piece is not None:
                        return piece
        return None
    return None


def _is_step(context: Context, call: Call) -> bool:
    function = call.node.func
    if isinstance(function, ast.Attribute) and function.attr in _ON_BATCH:
        return is_keras_method(context, call)
    return function_call(context.names, call) is not None and not is_traced(context.names, call.node)


def _is_training(context: Context, call: Call) -> bool:
    """Return True if a call is one of a step that updates variables."""
    if getattr(call.node.func, "attr", "") in _ON_BATCH:
        return getattr(call.node.func, "attr", "") == _TRAINS
    step = function_call(context.names, call)
    return step is not None and any(
        getattr(node, "attr", "") in ("apply_gradients", "minimize") for node in ast.walk(step.node)
    )
