"""Loops that feed a last partial batch.

``range(0, n, size)`` and ``min(start + size, n)`` cut an array into slices of one size. If the size does not divide
the number of rows, the last slice is smaller, and the NPU recompiles for it.

* In training, drop the last partial batch.
* In evaluation and prediction, use ``npu_shim.data.padded_batches``. It pads the last partial batch and also returns
  the number of real rows.

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
from typing import Iterator, NamedTuple

from ...analysis.phase_words import TRAIN, phases_in
from ...semantics.model import Call
from ...semantics.signatures import bind
from ...semantics.tf_types import Type
from ...syntax.expressions import constant, last_name
from ...syntax.source import one_line
from ..base import Context, Finding, Result

CODE = "NPU245"
METHODS = frozenset({"run", "eval"})
_SIGNATURES = {"run": ("fetches", "feed_dict"), "eval": ("feed_dict", "session")}
_RECOMPILES = "last partial batch: the NPU recompiles for it. "


class _Slice(NamedTuple):
    """A slice of an array: the array, the size of a slice, and the range or min that makes the last slice smaller."""

    whole: ast.expr
    size: ast.expr
    by: ast.Call


def check_method(context: Context, call: Call) -> Iterator[Result]:
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    bound = bind(call.node, _SIGNATURES[function.attr])
    feeds = _dict(context, call, bound.args.get("feed_dict"))
    if feeds is None or not (
        "feed_dict" in bound.keywords or context.types.of(function.value, call.where) == Type.SESSION
    ):
        return
    slices = [(key, _slice_of(context, call, value)) for key, value in zip(feeds.keys, feeds.values) if key is not None]
    found = [(key, piece) for key, piece in slices if piece is not None]
    if not found:
        return
    fetched = bound.args.get("fetches", function.value)
    if any(TRAIN in phases_in(word) or word in ("optimizer", "opt") for word in _names_in(fetched)):
        yield Finding(call.node, f"{_RECOMPILES}Drop it in training: {_full_range(context, found[0][1])}")
    else:
        whole = ", ".join(f"{_text(context, key)}: {_text(context, piece.whole)}" for key, piece in found)
        size = _text(context, found[0][1].size)
        yield Finding(
            call.node,
            f"{_RECOMPILES}Write for feed, real in npu_shim.data.padded_batches({{{whole}}}, {size}): "
            "and keep [:real] of the results",
        )


def _full_range(context: Context, piece: _Slice) -> str:
    """Return the advice that drops the last partial batch: another range, or an earlier end of the loop."""
    if len(piece.by.args) != 3:
        return "end the loop before it"
    size, stop = _text(context, piece.size), piece.by.args[1]
    plain = isinstance(stop, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) or constant(stop) is not None
    end = _text(context, stop) if plain else f"({_text(context, stop)})"
    return f"range({_text(context, piece.by.args[0])}, {end} - {size} + 1, {size})"


def _dict(context: Context, call: Call, node: ast.AST | None) -> ast.Dict | None:
    """Return the dict literal that is fed, directly or through a name."""
    if isinstance(node, ast.Name):
        bindings = context.names.lookup(node.id, call.where) or []
        node = bindings[0].node if len(bindings) == 1 and bindings[0].kind == "value" else None
    return node if isinstance(node, ast.Dict) else None


def _slice_of(context: Context, call: Call, value: ast.expr) -> _Slice | None:
    """Return the slice in a fed value, or None if its last slice is not known to be smaller."""
    if not isinstance(value, ast.Subscript):
        return None
    place: ast.AST = getattr(value.slice, "value", value.slice)  # in ast.Index before Python 3.9
    parts = getattr(place, "elts", None) or getattr(place, "dims", None) or [place]
    part = parts[0]
    if not isinstance(part, ast.Slice) or not isinstance(part.lower, ast.Name) or part.step is not None:
        return None
    if _is_tested(context, value, {part.lower.id, getattr(part.upper, "id", part.lower.id)}):
        return None
    upper = _value_of(context, call, part.upper)
    if isinstance(upper, ast.Call) and getattr(upper.func, "id", "") == "min" and len(upper.args) == 2:
        for argument in upper.args:
            size = _summand(argument, part.lower.id)
            if size is not None:
                return _Slice(value.value, size, upper)
    size = _summand(upper, part.lower.id)
    ranged = _range_of(context, value, part.lower.id) if size is not None else None
    if (
        size is None
        or ranged is None
        or ast.dump(ranged.args[2]) != ast.dump(size)
        or _divides(context, call, ranged, size)
    ):
        return None
    return _Slice(value.value, size, ranged)


def _value_of(context: Context, call: Call, node: ast.AST | None) -> ast.AST | None:
    if isinstance(node, ast.Name):
        bindings = context.names.lookup(node.id, call.where) or []
        return (
            bindings[-1].node
            if bindings
            and all(b.kind == "value" for b in bindings)
            and len({ast.dump(b.node) for b in bindings if b.node is not None}) == 1
            else None
        )
    return node


def _summand(node: ast.AST | None, start: str) -> ast.expr | None:
    """Return the summand of a name: ``size`` in ``start + size``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, ast.Name) and one.id == start:
                return other
    return None


def _range_of(context: Context, node: ast.AST, name: str) -> ast.Call | None:
    """Return the ``range(start, stop, step)`` of the loop around a node that binds a name."""
    for parent in context.names.ancestors(node):
        loops: list[tuple[ast.AST, ast.AST]] = (
            [(parent.target, parent.iter)]
            if isinstance(parent, ast.For)
            else [(g.target, g.iter) for g in getattr(parent, "generators", ())]
        )
        for target, over in loops:
            if isinstance(target, ast.Name) and target.id == name:
                ranged = isinstance(over, ast.Call) and last_name(over.func) in (
                    "range",
                    "xrange",
                    "trange",
                    "arange",
                )
                return over if ranged and len(over.args) == 3 else None  # type: ignore[attr-defined,return-value]
    return None


def _is_tested(context: Context, node: ast.AST, names: set[str]) -> bool:
    """Return True if the loop around a node tests one of the names."""
    loop = next((p for p in context.names.ancestors(node) if isinstance(p, (ast.For, ast.While))), None)
    return any(
        isinstance(n, ast.Name) and n.id in names
        for statement in getattr(loop, "body", ())
        for part in ast.walk(statement)
        if isinstance(part, (ast.If, ast.IfExp, ast.Assert))
        for n in ast.walk(part.test)
    )


def _divides(context: Context, call: Call, ranged: ast.Call, size: ast.expr) -> bool:
    """Return True if all slices of a range have one size, or if its end is computed so that they may."""
    numbers = [constant(argument) for argument in ranged.args]
    if None not in numbers:
        start, stop, step = [number[0] for number in numbers if number]
        return not step or (stop - start) % step == 0
    stop = _value_of(context, call, ranged.args[1])
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Sub, ast.FloorDiv, ast.Mod, ast.Mult))
        for part in (ast.walk(stop) if stop is not None else ())
    )


def _names_in(node: ast.AST | None) -> list[str]:
    return [
        last_name(part)
        for part in (ast.walk(node) if node is not None else ())
        if isinstance(part, (ast.Name, ast.Attribute))
    ]


def _text(context: Context, node: ast.AST) -> str:
    return one_line(context.source.segment(node))
