"""Report tensors of the global batch size in training steps (with ``-d tf_strategy``).

A rank trains on its slice of each batch. Noise or an initial state that a step makes with the batch size of the script
has the rows of the whole batch: the step fails, or its rows do not belong to the rows of the slice.
``npu.distribute.shard_batch(tensor)`` returns this rank's rows. All ranks have the same random numbers, so the rows of
all ranks together are those of one process. A size that is read from the batch, as ``tf.shape(images)[0]``, is right in
each rank, but then each rank has the same noise.

Options: -d tf_strategy

Reported::

    import tensorflow as tf

    BATCH_SIZE = 64
    optimizer = tf.keras.optimizers.SGD(0.1)
    dataset = tf.data.Dataset.from_tensor_slices(images).batch(BATCH_SIZE, drop_remainder=True)

    @tf.function
    def train_step(images):
        noise = tf.random.normal([BATCH_SIZE, 100])
        with tf.GradientTape() as tape:
            loss = loss_of(critic(images), critic(generator(noise)))
        optimizer.apply_gradients(zip(tape.gradient(loss, critic.variables), critic.variables))

    for images in dataset:
        train_step(images)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    BATCH_SIZE = 64

    @tf.function
    def train_step(images):
        noise = npu.distribute.shard_batch(tf.random.normal([BATCH_SIZE, 100]))
        with tf.GradientTape() as tape:
            loss = loss_of(critic(images), critic(generator(noise)))
        optimizer.apply_gradients(zip(tape.gradient(loss, critic.variables), critic.variables))

    for images in npu.distribute.shard_batches(dataset):
        train_step(images)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    seed = tf.random.normal([16, 100])

    @tf.function
    def train_step(images):
        noise = tf.random.normal([tf.shape(images)[0], 100])
        with tf.GradientTape() as tape:
            loss = loss_of(critic(images), critic(generator(noise)))
        optimizer.apply_gradients(zip(tape.gradient(loss, critic.variables), critic.variables))

    for images in npu.distribute.shard_batches(dataset):
        train_step(images)
"""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ...analysis.array_rows import integer_of
from ...analysis.device_placement import is_in_test
from ...analysis.parallel_training import (
    DISTRIBUTE,
    has_custom_training_loop,
    has_own_strategy,
    is_application,
    is_counter,
    is_in_train_step,
    training_calls,
    training_functions,
    trains_on_ranks,
)
from ...rewrite.npu_imports import device_name
from ...semantics.call_sites import values_passed_to_method
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_name
from ...syntax.source import one_line
from ..base import Context, Finding

CODE = "NPU255"
NEEDS = {"distributed": "tf_strategy"}
# The position of the shape.
_MADE = {
    "tensorflow.random.normal": 0,
    "tensorflow.random.uniform": 0,
    "tensorflow.random.truncated_normal": 0,
    "tensorflow.zeros": 0,
    "tensorflow.ones": 0,
    "numpy.random.normal": 2,
    "numpy.random.uniform": 2,
    "numpy.random.standard_normal": 0,
    "numpy.random.randn": 0,
    "numpy.random.rand": 0,
}
CALLS = frozenset(_MADE)
_KEYWORDS = frozenset({"shape", "size"})
_AROUND = (ast.FunctionDef, ast.For, ast.While)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    node = call.node
    position = _MADE.get(name, 0)
    given = [keyword.value for keyword in node.keywords if keyword.arg in _KEYWORDS]
    shape = given[0] if given else node.args[position] if len(node.args) > position else None
    rows = shape.elts[0] if isinstance(shape, (ast.List, ast.Tuple)) and shape.elts else shape
    if (
        rows is None
        or not (isinstance(rows, (ast.Name, ast.Attribute)) or boxed_constant(rows))
        or not trains_on_ranks(context)
        or has_own_strategy(context)
        or is_in_test(context, node)
        or not (has_custom_training_loop(context) or is_in_train_step(context.names, node))
        or not _is_undistributed_in_step(context, node)
        or not _is_batch_size(context, rows, call.where)
    ):
        return
    text = one_line(context.source.segment(node))
    yield Finding(
        node,
        "a tensor of the global batch beside this rank's slice. Write {0}.distribute.shard_batch({1})",
        device_name(context.names),
        text,
    )


def _is_undistributed_in_step(context: Context, node: ast.Call) -> bool:
    """Return True for code of a training step, outside of npu.distribute: in it, or in a function that it calls."""
    around = list(context.names.ancestors(node))
    if any(
        context.called_names.get(parent, "").startswith(DISTRIBUTE) for parent in around if isinstance(parent, ast.Call)
    ):
        return False
    steps = _training_step_code(context)
    return any(
        parent in steps.bodies or isinstance(parent, ast.FunctionDef) and parent.name in steps.called
        for parent in around
    )


class _Steps(NamedTuple):
    """The functions and loops of a file that take training steps, and the names of the functions that they call."""

    bodies: frozenset[ast.AST]
    called: frozenset[str]


def _training_step_code(context: Context) -> _Steps:
    functions = training_functions(context)
    return context.names.once(_find_training_step_code, functions)


def _find_training_step_code(names: Names, functions: frozenset[str]) -> _Steps:
    bodies: list[ast.AST] = [
        statement
        for loop in names.places
        if isinstance(loop, ast.For) and not is_counter(loop.iter) and training_calls(loop.body, functions)
        for statement in loop.body
    ]
    for call in names.calls:
        if is_application(call.node) or last_name(call.node.func) == "GradientTape":
            around = next((ancestor for ancestor in names.ancestors(call.node) if isinstance(ancestor, _AROUND)), None)
            bodies += [around] if isinstance(around, ast.FunctionDef) else []
    called = {"call"}  # of a layer or model
    reached = list(bodies)
    for _ in range(2):
        new = {last_name(node.func) for body in reached for node in ast.walk(body) if isinstance(node, ast.Call)}
        called |= new
        reached = [function.node for function in names.functions if getattr(function.node, "name", "") in new]
    return _Steps(frozenset(bodies), frozenset(called - {""}))


def _is_batch_size(context: Context, rows: ast.expr, where: Where) -> bool:
    """Return True if a size is that of the batches of the script: by its value, or by its name and no tensor's size."""
    sizes = context.names.once(_batch_size_arguments)
    value = integer_of(context, rows, where)
    if value is not None and value in {integer_of(context, size, place) for size, place in sizes}:
        return value > 1
    if not isinstance(rows, (ast.Name, ast.Attribute)):
        return False
    name = last_name(rows)
    names_batch = "batch" in name.lower() or any(last_name(size) == name for size, _ in sizes if _is_name(size))
    return names_batch and (value is not None or not _may_be_of_tensor(context, rows, where))


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))


def _batch_size_arguments(names: Names) -> list[tuple[ast.expr, Where]]:
    """Return the arguments of the calls of ``batch`` in a file."""
    return [
        (call.node.args[0], call.where)
        for call in names.calls
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "batch" and call.node.args
    ]


def _may_be_of_tensor(context: Context, rows: ast.expr, where: Where) -> bool:
    """Return True if a size may be read from a tensor, as a parameter of unknown value or ``tf.shape(x)[0]``."""
    for origin in origins(rows, where, context.names):
        node = origin.node
        if isinstance(node, (ast.Subscript, ast.Call)) and "shape" in ast.dump(node):
            return True
        if isinstance(node, ast.Name) and isinstance(rows, ast.Name):
            bound = origin.names.bindings_of_name(node.id, origin.where) or []
            values = [values_passed_to_method(binding, origin.names) for binding in bound if binding.kind == "arg"]
            if not bound or any(
                passed is None or any("shape" in ast.dump(one.value) for one in passed) for passed in values
            ):
                return True
    return False
