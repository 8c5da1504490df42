"""Towers: one process that drives several GPUs.

Such a script splits the batch, builds the model once for each GPU, and averages the gradients. A process for the NPU
has one device, which computes all towers one after the other: the step takes as long as one tower with the whole
batch, and the graph is several times as large.

Build one tower, with the batch of one device, and start one rank per device:

1. Set the number of GPUs to 1. The finding names the flag or the variable, if the tool finds it.
2. Run the tool with ``-d tf_strategy``. The optimizer then averages the gradients over the ranks, and the average over
   one tower changes nothing. With several towers each would add its own all-reduce for the same variables.
3. Start the script with ``npu-shim launch --ranks N``. Give each rank its own examples (see NPU252).

The rule reports the first such loop of each function. It does not report loops that place the layers of one model on
several GPUs: one NPU computes such a model as it is.

Reported::

    import tensorflow as tf

    for i in range(FLAGS.num_gpus):
        with tf.device('/gpu:%d' % i), tf.variable_scope('model', reuse=i > 0):
            towers.append(optimizer.compute_gradients(loss_of(parts[i])))

Reported::

    import tensorflow as tf

    GPUS = 4
    DEVICES = ['/gpu:{}'.format(i) for i in range(GPUS)]
    for device, part in zip(DEVICES, tf.split(images, GPUS)):
        with tf.device(device):
            losses.append(loss_of(part))

Reported::

    import tensorflow as tf

    for i in range(config.num_clones):
        device = config.clone_device(i)
        with tf.device(device):
            gradients.append(tf.gradients(loss_of(i), variables))

Untouched::

    import tensorflow as tf

    for i in range(layers):
        with tf.device('/job:localhost/task:%d' % i):
            cells.append(tf.nn.rnn_cell.LSTMCell(512))

Untouched::

    import tensorflow as tf

    for part in tf.split(images, 4):
        with tf.device('/cpu:0'):
            gradients.append(tf.gradients(loss_of(part), variables))
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.command_line_flags import flag_of
from ...analysis.device_placement import function_of, in_test
from ...analysis.gpu_names import gpu_numbers
from ...semantics.model import Call, Where
from ...semantics.value_flow import origins
from ...syntax.expressions import constant, last_name
from ..base import Context, Finding, Result

CODE = "NPU256"
_DEVICE = "tensorflow.device"
_OVER_GPUS = re.compile(r"gpu|tower|clone|replica|devices", re.IGNORECASE)
_TRAINS = re.compile(r"tower|clone|replica|loss|grad", re.IGNORECASE)
_GRADIENTS = re.compile(r"grad\w*\(", re.IGNORECASE)
_RANGES = frozenset({"range", "xrange", "arange"})
_SAME_LENGTH = frozenset({"enumerate", "list", "tuple", "reversed", "sorted", "len"})


def check_file(context: Context) -> Iterator[Result]:
    if _DEVICE not in context.called.values():
        return
    reported: set[ast.AST] = set()
    for call in context.names.calls:
        if context.called.get(call.node) != _DEVICE or in_test(context, call.node):
            continue
        function = function_of(context, call.node)
        loop = _loop_of_towers(context, call) if function not in reported else None
        advice = _advice(context, loop) if loop is not None else ""
        if loop is not None and advice:
            reported.add(function)
            each = ""
            if context.distributed == "tf_strategy" and _GRADIENTS.search(context.source.segment(loop)):
                each = ", each with its own all-reduce"
            yield Finding(
                loop,
                f"one NPU computes these towers one after the other{each}. {advice}, and start one rank per device",
            )


def _loop_of_towers(context: Context, call: Call) -> ast.For | None:
    """Return the loop that builds a tower on the device of a call, or None."""
    device: list[ast.expr] = [*call.node.args, *(k.value for k in call.node.keywords)]
    for loop in context.names.ancestors(call.node):
        if isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return None
        if not isinstance(loop, ast.For):
            continue
        assigned = [n for n in ast.walk(loop) if isinstance(n, ast.Assign)]
        for statement in assigned:  # device = '/gpu:%d' % i
            if _words(device) & _words(statement.targets):
                device.append(statement.value)
        if _words(device) & _words([loop.target]):
            return loop if _builds_towers(context, device, loop) else None
    return None


def _builds_towers(context: Context, device: list[ast.expr], loop: ast.For) -> bool:
    """Return True if the iterations of a loop are replicas of one model on several GPUs."""
    segment = context.source.segment
    iterated = segment(loop.iter)
    body = segment(loop)[len(iterated) :]
    numbers = [number for each in device for number in gpu_numbers(each)]
    if any(isinstance(n, (ast.Mod, ast.FloorDiv)) for number in numbers for n in ast.walk(number)):
        return False  # the layers of one model
    if numbers or any(re.search("gpu", segment(each), re.IGNORECASE) for each in [*device, loop.iter]):
        return bool(_OVER_GPUS.search(iterated) or _TRAINS.search(body))
    return bool(_GRADIENTS.search(body)) or "loss" in body and "reuse" in body


def _advice(context: Context, loop: ast.For) -> str:
    """Return how to build one tower; empty if the script builds only one."""
    where = context.names.places[loop]
    counted = _count(context, loop.iter, where)
    found = origins(counted, where, context.names)
    values = [constant(origin.node) for origin in found]
    if values and all(value == (1,) for value in values):
        return ""
    flag = flag_of(context, counted, where)
    if flag:
        return f"Run with {flag}=1"
    parts = [part for origin in found for part in ast.walk(origin.node) if isinstance(part, ast.Attribute)]
    flags = [flag for flag in (flag_of(context, part, where) for part in parts) if flag]
    if flags:
        return f"Name one device in {flags[0]}"
    if isinstance(counted, (ast.Name, ast.Attribute)) and not isinstance(found[0].node, (ast.ListComp, ast.List)):
        return f"Set {context.source.segment(counted)} to 1"
    return "Build one tower"


def _count(context: Context, node: ast.expr, where: Where, depth: int = 0) -> ast.expr:
    """Return the expression that decides how many elements an expression has, as far as it is known."""
    names = context.names
    if depth > 8:
        return node
    if isinstance(node, ast.ListComp):
        return _count(context, node.generators[0].iter, where, depth + 1)
    if isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(e, ast.Starred) for e in node.elts):
        return ast.Constant(value=len(node.elts))
    if isinstance(node, ast.Call) and node.args and not any(isinstance(a, ast.Starred) for a in node.args):
        word = last_name(node.func)
        if word in _RANGES:
            return _count(context, node.args[0 if len(node.args) == 1 else 1], where, depth + 1)
        if word in _SAME_LENGTH or word == "zip":
            return _count(context, node.args[0], where, depth + 1)
        if names.resolve(node.func, where) == "tensorflow.split" and len(node.args) > 1:
            return node.args[1]
    if isinstance(node, ast.Name):
        found = origins(node, where, names)
        if len(found) == 1 and found[0].names is names and isinstance(found[0].node, (ast.ListComp, ast.List, ast.Call)):
            inner = _count(context, found[0].node, found[0].where, depth + 1)
            return inner if inner is not found[0].node else node
    return node


def _words(nodes: list[ast.expr]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
