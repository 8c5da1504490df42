"""Loops over arrays whose last slice is smaller.

``for i in range(0, len(x), 64): step(x[i:i + 64])`` passes a smaller last batch if 64 does not divide the number of rows.
A tf.function is traced again for its shape, and the NPU compiles it again. ``train_on_batch`` has the same effect. Drop
this batch in training. In evaluation and prediction keep it: ``npu_shim.data.padded_batches`` pads it and returns the
number of real rows.

It makes no difference if a generator of the file yields the slices, if the slice is one of shuffled row numbers, or if
the loop is ``for k in range(ceil(n / 64))`` or a ``while`` loop.

The rule also reports a slice that grows or shrinks with the loop, such as ``x[:i]``, and a tensor such as
``tf.zeros([i])``. It has another shape in each iteration. Pad it to the longest length, with a mask. The parts of
``np.array_split`` have two lengths, unless their number divides the rows.

With facts of ``npu-shim observe``, the rule does not report arguments that had one shape in all observed runs.

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

Reported::

    import numpy as np
    import tensorflow as tf

    @tf.function
    def step(images):
        return model(images)

    for batch in np.array_split(images, 100):
        step(batch)

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

from ...analysis.device_placement import is_in_test
from ...analysis.generators import has_uneven_parts, slice_yielded_to_loop
from ...analysis.keras_methods import is_keras_method
from ...analysis.slices import (
    Slice,
    advice_for_full_range,
    has_changing_shape_in_loop,
    is_growing_slice,
    one_line_text,
    uneven_slice_of,
    value_of_argument,
)
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import is_traced, may_use_tf_function, traced_function_of
from ...facts.kinds import SHAPE
from ...facts.seen import only_shape
from ...semantics.model import Call
from ...syntax.expressions import values_of
from ..base import Context, Finding, Message, Question

CODE = "NPU276"
_TRAINS = "train_on_batch"
_ON_BATCH = frozenset({_TRAINS, "test_on_batch", "predict_on_batch"})
_LOOPS = ("range", "while", "array_split")


def check_file(context: Context) -> Iterator[Finding]:
    text = context.source.text
    if not any(word in text for word in _LOOPS):
        return
    if "_on_batch" not in text and not may_use_tf_function(context.names, text):
        return
    if not is_tf2_program(context):
        return
    for call in context.names.calls:
        for value in values_of(call.node):
            message = _message_on_argument(context, call, value)
            if not message or not _is_step_call(context, call):
                continue
            if not is_in_test(context, call.node) and only_shape(context.observed_at(CODE, SHAPE, value)) is None:
                yield Finding(call.node, message, asks=(Question(SHAPE, value),))
            break


def _message_on_argument(context: Context, call: Call, value: ast.expr) -> str:
    """Return the message about an argument whose shape changes, or ""."""
    bound = value_of_argument(context, call, value)
    piece = uneven_slice_of(context, call, bound) or slice_yielded_to_loop(context, call, value)
    if piece is not None:
        return Message("last partial batch: the NPU recompiles for it. {0}", _fix_of_slice(context, call, piece))
    if is_growing_slice(context, bound):
        return "another shape in each iteration: the NPU recompiles for each. Pad the slice to one length"
    if has_changing_shape_in_loop(context, bound):
        return "another shape in each iteration: the NPU recompiles for each. Make it of the longest length"
    if has_uneven_parts(context, call, value):
        return (
            "the parts of np.array_split may have two lengths, and the NPU compiles both. Cut the array to a multiple "
            "of the number of parts"
        )
    return ""


def _fix_of_slice(context: Context, call: Call, piece: Slice) -> str:
    if _is_training(context, call):
        return Message("In training drop it: {0}", advice_for_full_range(context, piece))
    whole, size = one_line_text(context, piece.whole), one_line_text(context, piece.size)
    return Message("Use npu_shim.data.padded_batches({0}, {1}) and keep [:real] of the results", whole, size)


def _is_step_call(context: Context, call: Call) -> bool:
    function = call.node.func
    if isinstance(function, ast.Attribute) and function.attr in _ON_BATCH:
        return is_keras_method(context, call)
    return traced_function_of(context.names, call) is not None and not is_traced(context.names, call.node)


def _is_training(context: Context, call: Call) -> bool:
    """Return True if a call is one of a step that updates variables."""
    if getattr(call.node.func, "attr", "") in _ON_BATCH:
        return getattr(call.node.func, "attr", "") == _TRAINS
    step = traced_function_of(context.names, call)
    return step is not None and any(
        getattr(node, "attr", "") in ("apply_gradients", "minimize") for node in ast.walk(step.node)
    )
