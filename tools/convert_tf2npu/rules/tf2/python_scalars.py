"""Python numbers that trace a tf.function again.

A function of ``@tf.function`` is traced once for each value of a Python number that it receives, such as the counter of
a loop, and the NPU compiles each trace. Pass a tensor: ``tf.constant(i)``. With an ``input_signature`` TensorFlow does
this itself.

Reported::

    import tensorflow as tf

    @tf.function
    def step(x, number):
        return model(x) * tf.cast(number, tf.float32)

    for i in range(1000):
        step(x, i)

Reported::

    import tensorflow as tf

    @tf.function
    def step(x, rate):
        return model(x) * rate

    for number, x in enumerate(dataset):
        step(x, rate=0.1 * number)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x, number):
        return model(x) * number

    for i in range(1000):
        step(x, tf.constant(i))
        step(batches[i], 3)

Untouched::

    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def step(number):
        return number + 1

    for i in range(1000):
        step(i)

Untouched::

    import tensorflow as tf

    @tf.function
    def steps(x):
        for i in tf.range(10):
            x = step(x, i)
        return x

    @tf.function
    def step(x, number):
        return x + number
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.tensorflow_version import is_two
from ...analysis.tf_functions import function_call, is_decorated, is_traced, names_function, signature_of
from ...semantics.model import Call
from ...syntax.expressions import constant, last_name
from ...syntax.source import one_line
from ..base import Context, Finding, Result

CODE = "NPU271"
_COUNTERS = frozenset({"range", "trange", "xrange"})


def check_file(context: Context) -> Iterator[Result]:
    if not names_function(context.source.text) or not any(
        is_decorated(context.names, function.node) for function in context.names.functions
    ):
        return
    for call in context.names.calls:
        values = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
        if not values or not _in_loop(context, call.node):
            continue
        counters = _counters(context, call.node)
        number = next((value for value in values if counters and _is_number(value, counters)), None)
        if number is None or not _is_traced_again(context, call) or in_test(context, call.node) or not is_two(context):
            continue
        text = one_line(context.source.segment(number))
        yield Finding(
            call.node,
            f"each value of {text} traces {last_name(call.node.func)} again, and the NPU compiles it. "
            f"Pass tf.constant({text})",
        )


def _is_traced_again(context: Context, call: Call) -> bool:
    """Return True if a call is one of a function of tf.function without a signature, and not inside another one."""
    function = function_call(context.names, call)
    if function is None or is_traced(context.names, call.node):
        return False
    decorator = signature_of(context.names, function)
    return (
        decorator is None
        or not any(keyword.arg in (None, "input_signature") for keyword in decorator.keywords)
        and not decorator.args
    )


def _in_loop(context: Context, node: ast.AST) -> bool:
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.For):
            return True
        if isinstance(parent, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            return False
    return False


def _counters(context: Context, node: ast.AST) -> set[str]:
    """Return the names that the loops around an expression count with."""
    found = set()
    for parent in context.names.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            break
        if isinstance(parent, ast.For) and isinstance(parent.iter, ast.Call) and isinstance(parent.iter.func, ast.Name):
            target = parent.target
            if parent.iter.func.id == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
                target = target.elts[0]
            elif parent.iter.func.id not in _COUNTERS:
                continue
            if isinstance(target, ast.Name):
                found.add(target.id)
    return found


def _is_number(node: ast.expr, counters: set[str]) -> bool:
    """Return True if an expression is a Python number that changes with a counter."""
    if isinstance(node, ast.Name):
        return node.id in counters
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
        return any(_is_number(side, counters) for side in sides) and all(
            _is_number(side, counters) or isinstance((constant(side) or ("",))[0], (int, float)) for side in sides
        )
    return False
