"""Placeholders with dimensions that are not known.

Where a placeholder leaves a dimension open, the card compiles the graph again for each size it is fed;
an open shape (``tf.placeholder(tf.float32)``) is open in every dimension, if its name does not say that
it is for one number. Told once in a file, with the number of such placeholders.

Told::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.int64, shape=(None,), name='labels')
    scores = tf.placeholder(tf.float32)

Untouched::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [32, 784])
    rate = tf.placeholder(tf.float32, [])
    keep_prob = tf.placeholder(tf.float32)

Untouched::

    import tensorflow as tf

    def serving_input_receiver_fn():
        x = tf.placeholder(tf.float32, [None, 784])
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import runs_on_card
from ...semantics.model import Call
from ...semantics.signatures import bind
from ...syntax.expressions import is_none, last_name
from ..base import Context, Finding, Result

CODE = "NPU234"
CALLS = frozenset({"tensorflow.placeholder", "tensorflow.placeholder_with_default"})
_NUMBERS = re.compile(
    r"bool|keep_?prob|dropout|learning_?rate|(?<![a-z])lr(?![a-z])|is_?train|training|"
    r"epsilon|momentum|temperature|clip_?range|phase|summary|global_?step"
)
_SIGNATURES = {"placeholder": ("dtype", "shape", "name"), "placeholder_with_default": ("input", "shape", "name")}


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if not _is_open(context, call):
        return
    places = [c for c in context.names.calls if _is_open(context, c)]
    if places[0].node is not call.node:
        return
    yield Finding(
        call.node,
        "%s a dimension open, and the card compiles the graph again for each size "
        "that is fed; write the sizes (the batch too: leave the smaller last batch out or pad "
        "it with npu_shim.data.padded_batches) and [] for a number"
        % (
            "this placeholder leaves"
            if len(places) == 1
            else "this and %d other placeholder%s leave" % (len(places) - 1, "s" if len(places) > 2 else "")
        ),
    )


def _is_open(context: Context, call: Call) -> bool:
    word = last_name(call.node.func)
    if word not in _SIGNATURES or context.resolve(call.node.func, call.where) not in CALLS:
        return False
    bound = bind(call.node, _SIGNATURES[word])
    if bound.hidden:
        return False
    shape = bound.args.get("shape")
    if shape is None or is_none(shape):
        open_shape = not _holds_a_number(context, call)
    else:
        open_shape = isinstance(shape, (ast.List, ast.Tuple)) and _has_none(shape.elts)
    return open_shape and runs_on_card(context, call.node)


def _holds_a_number(context: Context, call: Call) -> bool:
    """Whether the name a placeholder is given says that it is always fed one number."""
    parent = context.names.parents.get(call.node)
    named = [last_name(t) for t in parent.targets] if isinstance(parent, ast.Assign) else []
    text = " ".join(named) + " " + context.source.segment(call.node)
    return bool(_NUMBERS.search(text.lower()))


def _has_none(elements: list[ast.expr]) -> bool:
    return any(is_none(e) for e in elements)
