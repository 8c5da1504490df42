"""Training steps outside tf.function.

Outside tf.function TensorFlow runs each operation by itself, and the NPU compiles and starts it by itself, which takes
many times as long as one graph. Put the step into a function with ``@tf.function``. Methods that Keras compiles
(``train_step``), functions that a tf.function calls, and steps that nothing in the project calls are not reported.

With facts of ``npu-shim observe`` the rule writes ``@tf.function`` above a function that computes one step, if

* observed runs called it in all places, could trace it, and saw at most two shapes, of a full and of a partial batch;
* its arguments were tensors, arrays, the same objects of TensorFlow, or Python numbers that never changed, and it
  returned tensors or nothing;
* it has no random ops, which draw other numbers in a graph;
* its source shows no effect but on variables, and no value of Python that changes: no list that grows, no property;
* what else it calls is of TensorFlow, or layers and metrics of Keras whose calls have no such effect either.

A graph keeps what Python read at the first call. If that changes after all, ``npu-shim migrate`` takes the rewrite back,
because the program departs. The finding names functions that a run could trace where one of the first two points is open.
A step in the loop itself stays a finding.

Reported::

    import tensorflow as tf

    for x, y in dataset:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

Reported::

    from absl import app
    import tensorflow as tf

    def main(_):
        with tf.GradientTape() as tape:
            loss = loss_of(model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    app.run(main)

Reported::

    import tensorflow as tf

    optimizer = tf.keras.optimizers.SGD(0.1)
    for x in dataset:
        optimizer.minimize(lambda: loss_of(model(x)), model.trainable_variables)
        print(loss_of(model(x)).numpy())

Reported::

    import tensorflow as tf

    class Agent:
        def learn(self, x):
            with tf.GradientTape() as tape:
                loss = loss_of(self.model(x))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.variables), self.variables))

    agent = Agent()
    for x in dataset:
        agent.learn(x)

Untouched::

    import tensorflow as tf

    class Agent:
        def learn(self, x):
            with tf.GradientTape() as tape:
                loss = loss_of(self.model(x))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.variables), self.variables))

    def compiled(agent):
        return tf.function(agent.learn)

Untouched::

    import tensorflow as tf

    def update(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def step(x, y):
        update(x, y)
        update(y, x)

Untouched::

    import tensorflow as tf

    class Net(tf.keras.Model):
        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = self.loss_of(data)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))

Untouched::

    import tensorflow as tf

    def update(x):
        with tf.GradientTape() as tape:
            loss = loss_of(model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def compiled():
        return tf.function(update)

Untouched::

    import tensorflow as tf

    class Agent:
        def __init__(self):
            self.train = tf.function(self._train)

    class Learner(Agent):
        def _train(self, x):
            with tf.GradientTape() as tape:
                loss = loss_of(self.model(x))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.variables), self.variables))

Untouched::

    import tensorflow as tf

    def update_of_a_library(model, optimizer, x):
        with tf.GradientTape() as tape:
            loss = loss_of(model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
"""

from __future__ import annotations

import ast
from typing import Iterator, Sequence

from ...analysis.device_placement import is_in_test
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import enclosing_functions, is_function_used_outside_tests, may_be_traced
from ...analysis.traceable_steps import TraceableStep, assigned_attributes, traceable_step
from ...facts.kinds import CALLEE, OP, STEP
from ...facts.seen import Seen
from ...rewrite.npu_imports import name_of_tensorflow
from ...semantics.model import Call
from ...semantics.tf_types import Type
from ...syntax.source import Edit
from ...syntax.words import has_words
from ..base import Change, Context, Finding, Question

CODE = "NPU247"
_ARGUMENTS, _RETURNED = frozenset({"tensor", "array", "none", "object"}), frozenset({"tensor", "none"})
_MOST_SHAPES = 2  # those of a full batch and of the last partial one


def check_file(context: Context) -> Iterator[Change | Finding]:
    text = context.source.text
    tapes = "GradientTape" in text and has_words(text, ("apply_gradients", ".assign_sub("))
    if not tapes and not has_words(text, (".minimize(",)) or not is_tf2_program(context):
        return
    names = context.names
    reported: set[ast.AST | None] = set()
    for call in names.calls:
        is_tape = tapes and context.called_names.get(call.node) == "tensorflow.GradientTape"
        if not (is_tape or _minimizes_function(context, call)) or is_in_test(context, call.node):
            continue
        around = enclosing_functions(names, call.node)
        innermost = around[0] if around else None
        if innermost in reported or any(may_be_traced(names, function) for function in around):
            continue
        reported.add(innermost)
        if (
            innermost is not None
            and not _is_in_loop_of(context, call.node, innermost)
            and not is_function_used_outside_tests(names, innermost)
        ):
            continue  # a step for code outside the project, which may trace it
        seen = context.observed_at(CODE, OP, call.node)
        if seen is not None and "eager" not in (seen.all("in") or ("eager",)):
            continue
        step = None
        if is_tape and innermost is not None and not _is_in_loop_of(context, call.node, innermost):
            step = traceable_step(context, innermost)
        calls = [context.observed_at(CODE, STEP, function) for function in step.calls] if step is not None else []
        reached = [observed for observed in calls if observed is not None]
        if seen is not None and step is not None and innermost is not None and _could_be_traced(context, step, reached):
            tensorflow = name_of_tensorflow(names)
            has_few_shapes = all(0 < len(observed.all("shapes") or ()) <= _MOST_SHAPES for observed in reached)
            if tensorflow is not None and has_few_shapes and len(reached) == len(calls):
                edit = _edit_to_add_tf_function(context, innermost, tensorflow)
                runs = min(observed.runs for observed in reached)
                yield Change(call.node, "training step compiled with tf.function", (edit,), runs=runs)
                continue
            yield Finding(
                call.node,
                "this training step runs operation by operation, and an observed run could trace it. "
                "Put @tf.function above {0} if no value of Python that it reads changes",
                innermost.name,
            )
            continue
        asks = [Question(OP, call.node)]
        if step is not None:
            asks += [Question(STEP, function) for function in step.calls]
            asks += [Question(CALLEE, callee) for callee in step.callees]
        yield Finding(
            call.node,
            "this training step runs operation by operation. Put it into a function with @tf.function",
            asks=tuple(asks),
        )


def _could_be_traced(context: Context, step: TraceableStep, calls: Sequence[Seen]) -> bool:
    """Return True if observed runs called a step with tensors, and could trace it in all of them."""
    traced = all(
        call.only("eager") is True
        and (call.only("traces"), call.only("draws")) == (True, False)
        and (_ARGUMENTS | ({"number"} if call.only("constant") is True else set())).issuperset(
            call.all("arguments") or ()
        )
        and _RETURNED.issuperset(call.all("returns") or ("other",))
        for call in calls
    )
    takes_objects = any("object" in (call.all("arguments") or ()) for call in calls)
    if takes_objects and len(step.calls) > 1:
        return False  # a tf.function creates the variables of an optimizer in its first call only
    callees = [context.observed_at(CODE, CALLEE, callee) for callee in step.callees]
    return bool(calls) and traced and all(_has_no_effect(context, callee) for callee in callees)


def _edit_to_add_tf_function(context: Context, function: ast.FunctionDef, tensorflow: str) -> Edit:
    source = context.source
    start = source.start(function)
    indent = source.text[source.line_start(start) : start]
    return Edit(start, start, f"@{tensorflow}.function{source.newline}{indent}")


def _has_no_effect(context: Context, callee: Seen | None) -> bool:
    """Return True if what a step calls is of TensorFlow, or layers that read nothing that changes."""
    if callee is None or callee.only("is") not in ("library", "layer"):
        return False
    reads = callee.all("reads")
    return reads is not None and all(context.once(assigned_attributes).isdisjoint(names) for names in reads)  # type: ignore[arg-type]


def _minimizes_function(context: Context, call: Call) -> bool:
    """Return True if a call of an optimizer computes gradients of a function, and applies them."""
    function = call.node.func
    if not isinstance(function, ast.Attribute) or function.attr != "minimize" or not call.node.args:
        return False
    loss = call.node.args[0]
    is_function = isinstance(loss, ast.Lambda) or context.names.function_definition(loss, call.where) is not None
    kind = context.types.type_of(function.value, call.where)
    return is_function and kind in (Type.OPTIMIZER, Type.KERAS_OPTIMIZER)


def _is_in_loop_of(context: Context, node: ast.AST, function: ast.FunctionDef) -> bool:
    """Return True if an expression is in a loop of a function: a training loop and no step."""
    for parent in context.names.ancestors(node):
        if parent is function:
            return False
        if isinstance(parent, (ast.For, ast.While)):
            return True
    return False
