"""Placeholders with a dynamic shape.

If a placeholder has an unknown dimension, the NPU recompiles for each new size that is fed. A placeholder without a
shape, as ``tf.placeholder(tf.float32)``, counts too, unless its name says that it holds one number, such as
``keep_prob``, and so does a sparse placeholder, whose number of values changes. The rule reports one finding for each
file, with the number of such placeholders.

Give every dimension, including the batch, and the shape ``[]`` for one number. Drop the last partial batch, or pad it
with ``npu_shim.data.padded_batches``. Feed a dense tensor in place of a sparse one, or the same number of values each time.

With facts of ``npu-shim observe``, a placeholder that was fed one shape in all observed runs gets it. A later run that
feeds another shape ends with an error of TensorFlow that names the placeholder. A placeholder that was fed several
shapes stays as it is if each set of tensors that sessions fetch and feed had one shape, as 64 rows in training steps
and 10,000 in evaluations: the NPU compiles each set once. So does one that was made and never fed, as for a model that
is only saved. The finding on the others names shapes that were fed. A placeholder is also reported if the program may
feed it where no run came, as in an evaluation after the observed steps. The finding names this place, and counts as not
reached if the shapes that were fed need nothing. Such a feed counts unless the source proves that it feeds other
placeholders: a tensor looked up by its name or in a collection may be this one. So does a call, which no run reached,
of a function that feeds.

If the shapes stay dynamic, the graph cannot have the loops and conditions of TensorFlow 1 (error: ``v1 control
operator``). The rule reports that once for a file that has both, or that calls a function with them: call
``tf.enable_control_flow_v2()`` and ``tf.enable_resource_variables()`` after the import and after
``tf.disable_v2_behavior()``, or export ``ENABLE_FORCE_V2_CONTROL=1``. ``npu-shim assess`` finds them in all files.

Reported::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.int64, shape=(None,), name='labels')
    scores = tf.placeholder(tf.float32)

Reported::

    import tensorflow as tf

    adjacency = tf.sparse_placeholder(tf.float32, shape=[100, 100])

Reported::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [None, 784] if training else [1, 784])

Reported::

    import tensorflow as tf

    shape = [size if training else None] + [28, 28]
    x = tf.placeholder(tf.float32, shape)

Reported::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [None, 10, 3])
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)

Reported::

    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    x = tf.placeholder(tf.float32, [None, 10, 3])
    total = tf.foldl(tf.add, x)

Untouched::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [32, 784] if training else [1, 784])

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
import os
import re
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.fed_values import fed_values, feeds_elsewhere
from ...analysis.graph_control_flow import control_flow_advice
from ...analysis.program_calls import program_matches
from ...analysis.unreached_feeds import unreached_feed
from ...facts.kinds import SHAPE
from ...facts.seen import only_shape
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename
from ...semantics.model import Call, Where
from ...semantics.signatures import Bound, bind_arguments
from ...syntax.expressions import is_none, last_name
from ...syntax.source import Edit
from ..base import Change, Context, Finding, Message, Question

CODE = "NPU234"
_SPARSE = "tensorflow.sparse_placeholder"
CALLS = frozenset({"tensorflow.placeholder", "tensorflow.placeholder_with_default", _SPARSE})
_MOST_SHOWN = 4  # shapes in a message
# A placeholder may be fed in a copy of its graph, or in another process.
_OF_OTHER_GRAPHS = re.compile(rb"import_meta_graph|import_graph_def|multiprocessing")
_NUMBERS = re.compile(
    r"bool|keep_?prob|dropout|learning_?rate|(?<![a-z])lr(?![a-z])|is_?train|training|"
    r"epsilon|momentum|temperature|clip_?range|phase|summary|global_?step"
)
_SIGNATURES = {"placeholder": ("dtype", "shape", "name"), "placeholder_with_default": ("input", "shape", "name")}


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if not _is_dynamic(context, call):
        return
    seen, edits = context.observed_at(CODE, SHAPE, call.node), _edits_to_observed_shape(context, call)
    if seen is not None and edits:
        yield Change(call.node, "placeholder given the shape that it is fed", edits, runs=seen.runs)
        return
    places = context.once(_dynamic_placeholders, name == _SPARSE)
    if not places or places[0].node is not call.node:
        return
    asked = dict.fromkeys(node for place in places for node in (place.node, *fed_values(context, place.node)))
    asks = tuple(Question(SHAPE, node) for node in asked)
    unused = all(_needs_no_shape(context, place) for place in places)
    if name == _SPARSE:
        placeholders = "sparse placeholder" if len(places) == 1 else Message("{0} sparse placeholders", len(places))
        yield Finding(
            call.node,
            "{0}: the NPU recompiles for each new number of values. Feed dense tensors, or the same number "
            "of values each time",
            placeholders,
            asks=asks,
            unused=unused,
        )
        return
    placeholders = "placeholder" if len(places) == 1 else Message("{0} placeholders", len(places))
    unreached = next(filter(None, (_place_of_unreached_feed(context, place) for place in places)), "")
    fed = next((text for text in (_text_of_observed_shapes(context, place) for place in places) if text), "")
    if fed:
        yield Finding(
            call.node,
            "{0} with a dynamic shape: observed runs fed {1}, and the NPU recompiles for each. Give every dimension, "
            "including the batch; pad the last batch with npu_shim.data.padded_batches",
            placeholders,
            fed,
            asks=asks,
        )
    elif unreached:
        yield Finding(
            call.node,
            "{0} with a dynamic shape: no observed run reached the feed at {1}. Observe a longer run, or give "
            "every dimension, including the batch",
            placeholders,
            unreached,
            asks=asks,
            unused=unused,
        )
    else:
        yield Finding(
            call.node,
            "{0} with a dynamic shape: the NPU recompiles for each new shape. Give every dimension, including "
            "the batch; pad the last batch with npu_shim.data.padded_batches",
            placeholders,
            asks=asks,
            unused=unused,
        )
    advice = control_flow_advice(context, call.node)
    if advice:
        yield Finding(call.node, advice, unused=unused)


def _dynamic_placeholders(context: Context, is_sparse: bool) -> list[Call]:
    """Return the placeholders of a file that stay dynamic."""
    return [
        call
        for call in context.names.calls
        if _is_dynamic(context, call)
        and _is_sparse(context, call) == is_sparse
        and not (_edits_to_observed_shape(context, call) or is_sparse and _only_observed_shape(context, call))
        and not (_needs_no_shape(context, call) and not _place_of_unreached_feed(context, call))
    ]


def _only_observed_shape(context: Context, call: Call) -> tuple[int, ...] | None:
    """Return the only shape that observed runs fed to a placeholder; None without one, or if they missed a feed."""
    if _place_of_unreached_feed(context, call):
        return None
    return only_shape(context.observed_at(CODE, SHAPE, call.node))


def _place_of_unreached_feed(context: Context, call: Call) -> Message | str:
    """Return where a program feeds a placeholder that observed runs made, but did not feed there; "" without a place."""
    if context.observed_at(CODE, SHAPE, call.node) is None:
        return ""
    for value in fed_values(context, call.node):
        if context.observed_at(CODE, SHAPE, value) is None:
            return Message("line {0}", value.lineno)
    keyed = (feed for feed in feeds_elsewhere(context, call.node) if context.is_unreached(feed.names, feed.line))
    feed = next(keyed, None) or context.once(unreached_feed, call.node)
    return f"{os.path.basename(feed.names.path)}:{feed.line}" if feed is not None else ""


def _needs_no_shape(context: Context, call: Call) -> bool:
    """Return True if the NPU compiled nothing anew for a placeholder in observed runs: it was never fed, or see below."""
    seen = context.observed_at(CODE, SHAPE, call.node)
    has_default = last_name(call.node.func) == "placeholder_with_default"
    is_never_fed = seen is not None and not {"shape", "changes"} & seen.values.keys() and not has_default
    return is_never_fed and not context.once(program_matches, _OF_OTHER_GRAPHS) or _is_compiled_once(context, call)


def _is_compiled_once(context: Context, call: Call) -> bool:
    """Return True if observed runs fed a placeholder one shape for each set of tensors that they fetched and fed.

    Each set is a graph of its own on the NPU.
    """
    seen = context.observed_at(CODE, SHAPE, call.node)
    return seen is not None and seen.all("changes") == (False,)


def _text_of_observed_shapes(context: Context, call: Call) -> str:
    """Return some of the shapes that observed runs fed to a placeholder of one graph; the empty string without any."""
    seen = context.observed_at(CODE, SHAPE, call.node)
    values = seen.values.get("shape") if seen is not None else None
    if values is None or len(values.distinct) < 2 or _is_compiled_once(context, call):
        return ""
    shown = ", ".join(_shape_text(shape) for shape in values.distinct[:_MOST_SHOWN] if isinstance(shape, tuple))
    hidden = len(values.distinct) - _MOST_SHOWN
    return Message("{0} and {1} more shapes", shown, hidden) if hidden > 0 else shown


def _shape_text(shape: tuple[object, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _edits_to_observed_shape(context: Context, call: Call) -> tuple[Edit, ...]:
    """Return the edits that give a placeholder the only shape that it was fed; none if there are others.

    Sizes that the script writes are kept, and a shape that is no literal is not changed.
    """
    fed = _only_observed_shape(context, call)
    if fed is None or last_name(call.node.func) != "placeholder":
        return ()
    shape = bind_arguments(call.node, _SIGNATURES["placeholder"]).args.get("shape")
    if shape is None:
        edit = edit_to_add_argument(context.source, call.node, f"shape={_shape_text(fed)}")
        return (edit,) if edit is not None else ()
    if is_none(shape):
        return (edit_to_rename(context.source, shape, _shape_text(fed)),)
    if not isinstance(shape, (ast.List, ast.Tuple)) or len(shape.elts) != len(fed):
        return ()
    if any(isinstance(size, (ast.IfExp, ast.Starred)) for size in shape.elts):
        return ()
    sizes = zip(shape.elts, fed)
    return tuple(edit_to_rename(context.source, written, str(size)) for written, size in sizes if is_none(written))


def _is_sparse(context: Context, call: Call) -> bool:
    return context.resolve(call.node.func, call.where) == _SPARSE


def _is_dynamic(context: Context, call: Call) -> bool:
    if _is_sparse(context, call):
        return runs_on_npu(context, call.node)
    word = last_name(call.node.func)
    if word not in _SIGNATURES or context.resolve(call.node.func, call.where) not in CALLS:
        return False
    bound = bind_arguments(call.node, _SIGNATURES[word])
    if bound.hidden or _takes_strings(context, call, bound):
        return False
    shape = bound.args.get("shape")
    if shape is None or is_none(shape):
        dynamic = not _holds_a_number(context, call)
    else:
        dynamic = _has_unknown_dimension(context, shape, call.where)
    return dynamic and runs_on_npu(context, call.node)


def _takes_strings(context: Context, call: Call, bound: Bound) -> bool:
    """Return True if a placeholder takes strings, which only the host has."""
    dtype = bound.args.get("dtype")
    return dtype is not None and context.resolve(dtype, call.where) == "tensorflow.string"


def _holds_a_number(context: Context, call: Call) -> bool:
    """Return True if the name of a placeholder says that it is always fed one number."""
    parent = context.names.parents.get(call.node)
    named = [last_name(t) for t in parent.targets] if isinstance(parent, ast.Assign) else []
    text = " ".join(named) + " " + context.source.segment(call.node)
    return bool(_NUMBERS.search(text.lower()))


def _has_unknown_dimension(context: Context, shape: ast.expr, where: Where) -> bool:
    """Return True if a shape, or one of those that a condition chooses from, has an unknown dimension."""
    if isinstance(shape, ast.Name):
        bindings = context.names.bindings_of_name(shape.id, where) or []
        values = [(b.node, b.where) for b in bindings if b.kind == "value" and not isinstance(b.node, ast.Name)]
        return any(
            isinstance(node, ast.expr) and _has_unknown_dimension(context, node, place) for node, place in values
        )
    if isinstance(shape, ast.IfExp):
        return any(
            is_none(branch) or _has_unknown_dimension(context, branch, where) for branch in (shape.body, shape.orelse)
        )
    if isinstance(shape, ast.BinOp) and isinstance(shape.op, ast.Add):
        return _has_unknown_dimension(context, shape.left, where) or _has_unknown_dimension(context, shape.right, where)
    return isinstance(shape, (ast.List, ast.Tuple)) and any(map(_may_be_none, shape.elts))


def _may_be_none(size: ast.expr) -> bool:
    return is_none(size) or isinstance(size, ast.IfExp) and (_may_be_none(size.body) or _may_be_none(size.orelse))
