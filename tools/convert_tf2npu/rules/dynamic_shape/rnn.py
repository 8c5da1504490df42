"""Recurrent layers that loop over time.

``tf.nn.dynamic_rnn`` runs the time steps one by one in a loop on the NPU. ``npu_rnn.npu_dynamic_rnn`` is unrolled
over a fixed number of steps. Its inputs and outputs have time as the first dimension. It takes ``dtype`` and
``sequence_length`` too.

With facts of ``npu-shim observe``, the rule writes ``npu_rnn.npu_dynamic_rnn`` for ``tf.nn.dynamic_rnn`` if the number of
steps was static in all observed runs, at most 128, the steps have no random operations, such as those of a
``DropoutWrapper``, and the program has no class of cells of its own. It transposes the inputs, and the outputs in a line
of their own. A later run without a static number of steps raises an error where the layer is built.

Reported::

    import tensorflow as tf

    cell = tf.nn.rnn_cell.LSTMCell(256)
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)

Reported::

    import tensorflow as tf

    outputs, states = tf.nn.bidirectional_dynamic_rnn(forward, backward, inputs, lengths, dtype=tf.float32)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    cell = tf.nn.rnn_cell.LSTMCell(256)
    outputs, state = npu_rnn.npu_dynamic_rnn(cell, tf.transpose(inputs, [1, 0, 2]), dtype=tf.float32)

Untouched::

    import tensorflow as tf

    outputs, state = tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), dtype=tf.float32)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.program_calls import program_matches
from ...facts.kinds import LOOP, ROWS
from ...rewrite.call_edits import edit_to_rename, edits_to_wrap, name_argument
from ...rewrite.insertion import edit_adding_after
from ...rewrite.npu_imports import name_of_tensorflow
from ...rewrite.removal import remove_arguments
from ...semantics.model import Call
from ...semantics.signatures import Bound, bind_arguments
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant
from ...syntax.source import Edit, one_line
from ...tf_api.name_tables import PARAMETERS
from ..base import Change, Context, Finding, Question

CODE = "NPU207"
_BIDIRECTIONAL = "tensorflow.nn.bidirectional_dynamic_rnn"
CALLS = frozenset({"tensorflow.nn.dynamic_rnn", _BIDIRECTIONAL})
_SIGNATURE = PARAMETERS["tensorflow.nn.dynamic_rnn"]
_ONLY_OF_LOOPS = frozenset({"parallel_iterations", "swap_memory", "time_major"})
# The call of such a cell runs once for a loop, and for each of the steps.
_OWN_CELL = re.compile(rb"class\s+\w+\s*\([^)]*(?:Cell|Wrapper)\b")
_MOST_STEPS = 128  # of which each is a part of the graph


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if not runs_on_npu(context, call.node):
        return
    if name == _BIDIRECTIONAL:
        yield Finding(
            call.node,
            "the time steps run in two loops. For a fixed number of steps, write npu_rnn.npu_dynamic_rnn for each "
            "direction, the second with tf.reverse_sequence before and after it",
        )
        return
    bound = bind_arguments(call.node, _SIGNATURE)
    time_first = boxed_constant(bound.args.get("time_major")) == (True,)
    runs = _runs_with_few_steps(context, call.node, bound, time_first)
    edits = _edits_to_unroll(context, call.node, bound, time_first) if runs is not None else ()
    if edits:
        yield Change(call.node, "the time steps are unrolled", edits, ("npu_rnn",), runs)
        return
    cell, inputs = (one_line(context.source.segment(bound.args[a])) if a in bound.args else a for a in _SIGNATURE[:2])
    time_major = inputs if time_first else f"tf.transpose({inputs}, [1, 0, 2])"
    back = "" if time_first else " and transpose back"
    asks = [Question(ROWS, bound.args["inputs"])] if "inputs" in bound.args else []
    yield Finding(
        call.node,
        "the time steps run in a loop. For a fixed number of steps, write npu_rnn.npu_dynamic_rnn({0}, {1}, ...){2}",
        cell,
        time_major,
        back,
        asks=(Question(LOOP, call.node), *asks),
    )


def _runs_with_few_steps(context: Context, node: ast.Call, bound: Bound, time_first: bool) -> int | None:
    """Return the number of observed runs if each had a static number of steps, without random operations in them."""
    loop = context.observed_at(CODE, LOOP, node)
    inputs = context.observed_at(CODE, ROWS, bound.args["inputs"]) if "inputs" in bound.args else None
    if context.once(program_matches, _OWN_CELL) or _may_be_several(context, node, bound.args.get("inputs")):
        return None
    if loop is None or inputs is None or inputs.only("rank") != 3:
        return None
    if loop.only("in") != "graph" or loop.all("draws") != (False,):
        return None
    shapes = loop.all("dimensions") or (None,)
    steps = [shape[not time_first] if isinstance(shape, tuple) and len(shape) == 3 else None for shape in shapes]
    return loop.runs if all(isinstance(number, int) and 0 < number <= _MOST_STEPS for number in steps) else None


def _may_be_several(context: Context, node: ast.Call, inputs: ast.expr | None) -> bool:
    """Return True if the inputs of a loop may be a tuple or list of tensors."""
    sources = origins(inputs, context.names.place(node), context.names) if inputs is not None else []
    return any(isinstance(source.node, (ast.Tuple, ast.List)) for source in sources)


def _edits_to_unroll(context: Context, node: ast.Call, bound: Bound, time_first: bool) -> tuple[Edit, ...]:
    """Return the edits that write ``npu_rnn.npu_dynamic_rnn``; () if an argument or the outputs are unclear."""
    source, tensorflow = context.source, name_of_tensorflow(context.names)
    is_known = "time_major" not in bound.args or boxed_constant(bound.args["time_major"]) in ((True,), (False,))
    if bound.hidden or bound.unknown or not is_known:
        return ()
    edits = [edit_to_rename(source, node.func, "npu_rnn.npu_dynamic_rnn")]
    removed = [bound.args[name] for name in _ONLY_OF_LOOPS & bound.args.keys()]
    edits += remove_arguments(source, node, removed)
    edits += [
        name_argument(source, node, bound.args[name], name)
        for name in bound.positional[2:]
        if name not in _ONLY_OF_LOOPS
    ]
    if time_first:
        return tuple(edits)
    statement = context.names.parents[node]
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    outputs = target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    is_name = (
        isinstance(outputs, ast.Attribute) and isinstance(outputs.value, ast.Name) or isinstance(outputs, ast.Name)
    )
    if not (isinstance(statement, ast.Assign) and outputs is not None and is_name and tensorflow):
        return ()
    edits += edits_to_wrap(source, bound.args["inputs"], f"{tensorflow}.transpose(", ", [1, 0, 2])")
    text = source.segment(outputs)
    if text == "_":
        return tuple(edits)
    back = edit_adding_after(context, statement, f"{text} = {tensorflow}.transpose({text}, [1, 0, 2])")
    return (*edits, back) if back is not None else ()
