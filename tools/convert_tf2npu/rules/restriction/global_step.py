"""Global step incremented outside the optimizer.

A loss scale optimizer skips the update if gradients overflow, and does not count this step. If the script increments
the global step itself, skipped steps count too, and the learning rate schedule runs ahead of the training. Pass
``global_step`` to ``apply_gradients`` instead. A Keras optimizer takes none and counts its updates in ``iterations``.
An optimizer class of your own increments it in its ``apply_gradients``. The message names the class if it ignores
``global_step``: only then pass it.

With facts of ``npu-shim observe``, there is no finding if no run of a session may skip an update, because no condition or
function is around one, and the program names no loss scaling. Observe again when you add it.

Reported::

    import tensorflow as tf

    def create_optimizer(loss, optimizer, grads, variables):
        global_step = tf.train.get_or_create_global_step()
        train_op = optimizer.apply_gradients(zip(grads, variables))
        return tf.group(train_op, [global_step.assign(global_step + 1)])

Reported::

    import tensorflow as tf

    class AdamW(tf.train.Optimizer):
        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            return tf.group(*[v.assign_sub(0.1 * g) for g, v in grads_and_vars])

    def create_optimizer(grads_and_vars):
        global_step = tf.train.get_or_create_global_step()
        train_op = AdamW(False, 'AdamW').apply_gradients(grads_and_vars, global_step=global_step)
        return tf.group(train_op, [global_step.assign(global_step + 1)])

Reported::

    import tensorflow as tf

    step = tf.train.get_global_step()
    train_op = tf.group(update, tf.assign_add(step, 1))

Reported::

    import tensorflow as tf

    def train(loss, variables):
        optimizer = tf.keras.optimizers.Adam()
        step = tf.compat.v1.train.get_or_create_global_step()
        optimizer.apply_gradients(zip(gradients, variables))
        step.assign_add(1)

Untouched::

    import tensorflow as tf

    global_step = tf.train.get_or_create_global_step()
    train_op = optimizer.apply_gradients(zip(grads, variables), global_step=global_step)

Untouched::

    import tensorflow as tf

    class Optimizer(tf.train.Optimizer):
        def apply_gradients(self, grads, global_step=None, name=None):
            return tf.assign_add(tf.train.get_global_step(), 1)

Untouched::

    import tensorflow as tf

    epoch = tf.Variable(0)
    next_epoch = tf.assign_add(epoch, 1)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import enclosing_function, runs_on_npu
from ...analysis.program_calls import program_matches
from ...facts.kinds import OP
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_part
from ..base import Context, Finding, Message, Question

CODE = "NPU226"
CALLS = frozenset({"tensorflow.assign", "tensorflow.assign_add", "tensorflow.compat.v1.assign_add"})
METHODS = frozenset({"assign", "assign_add"})
# Rewrites make it skip updates.
_LOSS_SCALING = re.compile(rb"[Ll]oss_?[Ss]cal|mixed_precision")
_STEPS = frozenset(
    "tensorflow.train." + name
    for name in """get_or_create_global_step get_global_step
create_global_step""".split()
) | {"tensorflow.contrib.framework.get_or_create_global_step", "tensorflow.contrib.framework.get_global_step"}


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    yield from _findings_of_step_update(context, call, method.value, call.node.args, method.attr)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if call.node.args:
        yield from _findings_of_step_update(context, call, call.node.args[0], call.node.args[1:], last_part(name))


def _findings_of_step_update(
    context: Context, call: Call, target: ast.expr, values: list[ast.expr], word: str
) -> Iterator[Finding]:
    if not _is_global_step(context, target, call.where) or not values:
        return
    if word == "assign" and not _is_step_plus_one(context, values[0], call.where):
        return
    if word == "assign_add" and boxed_constant(values[0]) != (1,):
        return
    function = enclosing_function(context, call.node)
    if runs_on_npu(context, call.node) and getattr(function, "name", "") != "apply_gradients":
        seen = context.observed_at(CODE, OP, call.node)
        if seen is not None and seen.all("skips") == (False,) and seen.all("in") == ("graph",):
            if not context.once(program_matches, _LOSS_SCALING):
                return
        ignoring = _optimizer_ignoring_step(context, function)
        move = Message("Increment it in {0}.apply_gradients, which ignores global_step, and remove it here", ignoring)
        pass_it = "Remove it and write optimizer.apply_gradients(..., global_step=global_step)"
        if function in context.once(_functions_training_with_keras):
            pass_it = "Remove it and read optimizer.iterations, which the optimizer increments"
        fix = move if ignoring else pass_it
        asks = (Question(OP, call.node),)
        yield Finding(call.node, "this also counts the steps that loss scaling skips. {0}", fix, asks=asks)


def _functions_training_with_keras(context: Context) -> frozenset[ast.AST]:
    """Return the functions in which a Keras optimizer trains, whose ``apply_gradients`` takes no step."""
    names = context.names
    return frozenset(
        parent
        for call in names.calls
        if isinstance(call.node.func, ast.Attribute)
        and call.node.func.attr in ("apply_gradients", "minimize")
        and names.types.type_of(call.node.func.value, call.where) == Type.KERAS_OPTIMIZER
        for parent in names.ancestors(call.node)
    )


def _optimizer_ignoring_step(context: Context, function: ast.AST) -> str | None:
    """Return the class of the project that a function calls ``apply_gradients`` of, if that does not use the step."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr != "apply_gradients":
            continue
        for optimizer in origins(node.func.value, context.names.place(node), context.names):
            if not isinstance(optimizer.node, ast.Call):
                continue
            for its_class in origins(optimizer.node.func, optimizer.where, optimizer.names):
                if isinstance(its_class.node, ast.ClassDef) and _ignores_step(its_class.node, its_class.names):
                    return its_class.node.name
    return None


def _ignores_step(its_class: ast.ClassDef, names: Names) -> bool:
    methods = [
        binding.node
        for binding, _ in names.attribute_bindings(its_class, "apply_gradients")
        if binding.node is not None
    ]
    return bool(methods) and not any(
        isinstance(node, ast.Name)
        and node.id == "global_step"
        or isinstance(node, ast.Attribute)
        and node.attr == "apply_gradients"
        for method in methods
        for node in ast.walk(method)
    )


def _is_step_plus_one(context: Context, node: ast.expr, where: Where) -> bool:
    binding = context.names.only_binding(node, where)
    if binding is not None and isinstance(binding.node, ast.BinOp):
        node, where = binding.node, binding.where
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and boxed_constant(node.right) == (1,)
        and _is_global_step(context, node.left, where)
    )


def _is_global_step(context: Context, node: ast.expr, where: Where) -> bool:
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, where) or []
        return bool(bindings) and all(
            b.kind == "value" and isinstance(b.node, ast.Call) and _is_global_step(context, b.node, b.where)
            for b in bindings
        )
    return isinstance(node, ast.Call) and context.resolve(node.func, where) in _STEPS
