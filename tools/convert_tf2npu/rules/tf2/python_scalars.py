"""Python numbers that trace a tf.function again.

A function of ``@tf.function`` is traced once for each value of a Python number that it receives, such as the counter of
a loop, and the NPU compiles each trace. Pass a tensor: ``tf.constant(i)``. With an ``input_signature`` TensorFlow does
this itself. Such a number is the counter of ``range`` or ``enumerate``, a variable that the code counts up, or an expression
of them.

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

Reported::

    import tensorflow as tf

    def update(x, rate):
        return model(x) * rate

    step = tf.function(update)
    rate = 0.1
    while rate > 0.001:
        step(x, rate)
        rate *= 0.5

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

from ...analysis.device_placement import is_in_test
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import is_traced, may_have_signature, may_use_tf_function, traced_function_of
from ...semantics.call_sites import values_passed_to_method, values_passed_to_parameter
from ...semantics.model import Binding, Call, Where
from ...semantics.module_index import Names
from ...syntax.expressions import constant_or, last_name, values_of
from ...syntax.source import one_line
from ..base import Context, Finding

CODE = "NPU271"
_COUNTERS = frozenset({"range", "trange", "xrange"})
_AROUND = frozenset({"enumerate", "tqdm"})
_BARS = frozenset({"tqdm", "trange"})
_NUMBERS = frozenset({"float", "int"})
_LOOPS = (ast.For, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def check_file(context: Context) -> Iterator[Finding]:
    names = context.names
    if not may_use_tf_function(names, context.source.text) or not is_tf2_program(context):
        return
    for call in names.calls:
        if context.called_names.get(call.node, "").startswith("tensorflow.") or not _is_traced_again(names, call):
            continue
        values = values_of(call.node)
        number = next(
            (value for value in values if _Numbers().is_number_changing_in_loop(names, value, call.where)), None
        )
        if number is None or is_in_test(context, call.node):
            continue
        text = one_line(context.source.segment(number))
        yield Finding(
            call.node,
            "each value of {0} traces {1} again, and the NPU compiles it. Pass tf.constant({2})",
            text,
            last_name(call.node.func),
            text,
        )


def _is_traced_again(names: Names, call: Call) -> bool:
    """Return True if a call is one of a function of tf.function without a signature, and not inside another one."""
    values = values_of(call.node)
    if not any(isinstance(value, (ast.Attribute, ast.BinOp, ast.Call, ast.Name)) for value in values):
        return False
    function = traced_function_of(names, call)
    return function is not None and not may_have_signature(function) and not is_traced(names, call.node)


def _loops_around(names: Names, node: ast.AST) -> list[ast.For | ast.While]:
    """Return the loops around an expression, in its function."""
    loops = []
    for parent in names.ancestors(node):
        if isinstance(parent, _SCOPES):
            break
        if isinstance(parent, _LOOPS):
            loops.append(parent)
    return loops


def _names_counted_in(loops: list[ast.For | ast.While]) -> set[str]:
    """Return the names of Python numbers that change in loops: those that a loop counts with, ``n += 1``."""
    counters = set()
    for loop in loops:
        if isinstance(loop, ast.For):
            counters |= _names_counted_by_loop(loop.target, loop.iter)
        for node in ast.walk(loop):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and _is_literal(node.value):
                counters.add(node.target.id)
    return counters


def _names_counted_by_loop(target: ast.expr, over: ast.expr) -> set[str]:
    """Return the names that a loop over ``range`` or ``enumerate`` counts with, also inside ``tqdm``."""
    if not isinstance(over, ast.Call):
        return set()
    name = last_name(over.func)
    if isinstance(over.func, ast.Attribute) and name not in _BARS:
        return set()  # tf.range
    if name in _COUNTERS:
        return {target.id} if isinstance(target, ast.Name) else set()
    if name not in _AROUND or not over.args:
        return set()
    if name == "tqdm":
        return _names_counted_by_loop(target, over.args[0])
    if isinstance(target, ast.Tuple) and target.elts and isinstance(target.elts[0], ast.Name):
        return {target.elts[0].id}
    return set()


def _is_literal(node: ast.AST | None) -> bool:
    value = constant_or(node, None)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _counts_up(names: Names, node: ast.Attribute) -> bool:
    """Return True if an attribute of an object holds a number that the file counts up: ``self.steps += 1``."""
    added = set()
    for held in names.attributes.get(node.attr, ()):
        if ast.dump(held.target.value) == ast.dump(node.value):
            statement = names.parents[held.target]
            if not isinstance(statement, (ast.Assign, ast.AugAssign)) or not _is_literal(statement.value):
                return False
            added.add(isinstance(statement, ast.AugAssign))
    return True in added and False in added


class _Numbers:
    """One question about a value. It follows each variable once."""

    def __init__(self) -> None:
        self._followed: set[ast.AST | None] = set()

    def is_number_changing_in_loop(self, names: Names, node: ast.expr, where: Where) -> bool:
        """Return True if an expression is a Python number that changes with a loop around it, or around a call."""
        if isinstance(node, ast.Name):
            bindings = names.bindings_of_name(node.id, where) or []
            if node.id in _names_counted_in(_loops_around(names, node)):
                return all(b.kind == "other" or b.kind == "value" and _is_literal(b.node) for b in bindings)
            return len(bindings) == 1 and self._is_bound_to_changing_number(names, bindings[0])
        if isinstance(node, ast.Attribute):
            return _counts_up(names, node)
        if isinstance(node, ast.Call):
            builtin = isinstance(node.func, ast.Name) and node.func.id in _NUMBERS and len(node.args) == 1
            return builtin and self.is_number_changing_in_loop(names, node.args[0], where)
        if isinstance(node, ast.BinOp):
            sides = [(side, self.is_number_changing_in_loop(names, side, where)) for side in (node.left, node.right)]
            return any(number for _, number in sides) and all(number or _is_literal(side) for side, number in sides)
        return False

    def _is_bound_to_changing_number(self, names: Names, binding: Binding) -> bool:
        """Return True if a variable or a parameter of a function is such a number."""
        if binding.node in self._followed:
            return False
        self._followed.add(binding.node)
        if binding.kind == "value" and isinstance(binding.node, ast.expr):
            return self.is_number_changing_in_loop(names, binding.node, binding.where)
        if binding.kind == "arg":
            values = values_passed_to_parameter(binding, names) or values_passed_to_method(binding, names) or []
            return any(self.is_number_changing_in_loop(value.names, value.value, value.where) for value in values)
        return False
