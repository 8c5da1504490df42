"""Loops that feed a last partial batch.

``range(0, n, size)`` and ``min(start + size, n)`` cut an array into slices of one size. If the size does not divide
the number of rows, the last slice is smaller, and the NPU recompiles for it.

* In training, drop the last partial batch.
* In evaluation and prediction, use ``npu_shim.data.padded_batches``. It pads the last partial batch and also returns
  the number of real rows.

With facts of ``npu-shim observe``, the rule does not report slices that had one shape in all observed runs.

Reported::

    import tensorflow as tf

    for i in range(0, len(images), 100):
        scores.extend(sess.run(probabilities, feed_dict={x: images[i:i + 100]}))

Reported::

    import tensorflow as tf

    while start < count:
        end = min(start + batch_size, count)
        feed = {x: images[start:end, :], keep_prob: 1.0}
        classes[start:end] = sess.run(predicted, feed_dict=feed)
        start = end

Reported::

    import tensorflow as tf

    for i in range(0, len(images), FLAGS.batch_size):
        sess.run(train_op, feed_dict={x: images[i:i + FLAGS.batch_size], y: labels[i:i + FLAGS.batch_size]})

Untouched::

    import tensorflow as tf

    for i in range(len(images) // 100):
        sess.run(train_op, feed_dict={x: images[i * 100:(i + 1) * 100]})

Untouched::

    import tensorflow as tf

    for i in range(0, len(images) - 99, 100):
        sess.run(train_op, feed_dict={x: images[i:i + 100]})
    for i in range(0, 10000, 100):
        sess.run(probabilities, feed_dict={x: test_images[i:i + 100]})

Untouched::

    import tensorflow as tf

    for begin in range(0, count, 64):
        end = begin + 64
        if end <= count:
            scores[begin:end] = sess.run(probabilities, feed_dict={x: data[begin:end]})
        else:
            scores[-64:] = sess.run(probabilities, feed_dict={x: data[-64:]})

Untouched::

    import tensorflow as tf

    for images, real in padded_batches(data, 100):
        scores.extend(sess.run(probabilities, feed_dict={x: images})[:real])
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.phase_words import TRAIN, phases_in
from ...analysis.slices import advice_for_full_range, one_line_text, uneven_slice_of
from ...facts.kinds import SHAPE
from ...facts.seen import only_shape
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import Type
from ...syntax.expressions import last_name
from ..base import Context, Finding, Question

CODE = "NPU245"
METHODS = frozenset({"run", "eval"})
_SIGNATURES = {"run": ("fetches", "feed_dict"), "eval": ("feed_dict", "session")}
_RECOMPILES = "last partial batch: the NPU recompiles for it. "


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    bound = bind_arguments(call.node, _SIGNATURES[method.attr])
    feeds = _fed_dict(context, call, bound.args.get("feed_dict"))
    if feeds is None or not (
        "feed_dict" in bound.keywords or context.types.type_of(method.value, call.where) == Type.SESSION
    ):
        return
    slices = [
        (key, value, uneven_slice_of(context, call, value))
        for key, value in zip(feeds.keys, feeds.values)
        if key is not None
    ]
    pieces = [(key, piece) for key, _, piece in slices if piece is not None]
    asks = tuple(Question(SHAPE, value) for _, value, piece in slices if piece is not None)
    if not pieces or all(only_shape(context.observed_at(CODE, SHAPE, question.node)) is not None for question in asks):
        return
    fetched = bound.args.get("fetches", method.value)
    if any(TRAIN in phases_in(word) or word in ("optimizer", "opt") for word in _names_in(fetched)):
        yield Finding(
            call.node,
            "{0}Drop it in training: {1}",
            _RECOMPILES,
            advice_for_full_range(context, pieces[0][1]),
            asks=asks,
        )
    else:
        whole = ", ".join(
            f"{one_line_text(context, key)}: {one_line_text(context, piece.whole)}" for key, piece in pieces
        )
        size = one_line_text(context, pieces[0][1].size)
        yield Finding(
            call.node,
            "{0}Write for feed, real in npu_shim.data.padded_batches({{{1}}}, {2}): and keep [:real] of the results",
            _RECOMPILES,
            whole,
            size,
            asks=asks,
        )


def _fed_dict(context: Context, call: Call, node: ast.AST | None) -> ast.Dict | None:
    """Return the dict literal that is fed, directly or through a name."""
    binding = context.names.only_binding(node, call.where, "value")
    value = binding.node if binding is not None else node
    return value if isinstance(value, ast.Dict) else None


def _names_in(node: ast.AST | None) -> list[str]:
    return [
        last_name(part)
        for part in (ast.walk(node) if node is not None else ())
        if isinstance(part, (ast.Name, ast.Attribute))
    ]
