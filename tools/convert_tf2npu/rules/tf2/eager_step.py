"""Training steps outside tf.function.

Outside tf.function TensorFlow runs each operation by itself. TF Adapter 2.x computes it on the host, between copies to
the NPU and back, and on the NPU only operations on variables, each as a graph. Put the step into a function with
``@tf.function``. Methods that Keras compiles (``train_step``), functions that a tf.function calls, and steps that nothing
in the project calls are not reported.

With facts of ``npu-shim observe`` the rule writes ``@tf.function`` above a function that computes one step. A step in a loop
becomes such a function before the loop: it gets the names that the step reads and that change, and returns those that
other code reads. The rule does so if

* observed runs reached all its calls, could trace it, and saw at most two shapes, of a full and of a partial batch; no
  condition on tensors decides what has a gradient;
* it gets tensors, arrays, the same objects of TensorFlow, or Python numbers that never change, and returns tensors or
  nothing; a function of a step in a loop gets arrays of float64 as float32 if it can be traced only so;
* its source shows no effect but on variables, and no value of Python that changes: no list that grows, no property, no
  name that another file assigns to;
* what else it calls is of TensorFlow, or layers and metrics of Keras whose calls have no such effect either; objects of
  TensorFlow hold no other code of the script, such as an activation or a schedule, and run none, as ``tf.map_fn`` does;
* such layers call no object of the script that is no layer, and read no number from outside; all are built after the
  first step, and none adds a loss of its outputs, which code may read after the step;
* no list, dictionary or array that it reads has numbers of Python or NumPy, which other code may change, and those of
  tensors and layers have one name; no object that it reads computes its attributes or has operators of its own, is made
  again by ``__init__``, or is a model or a layer that the program compiles or adapts again;
* no class overrides the functions that it calls, no model is saved that has the step as a method, and no loop goes on
  after an error of the step;
* for a step in a loop: the loop runs once in a program, sets no attributes but learning rates, its models and optimizers
  are bound once, and no other rule writes in the step.

A graph keeps what Python read at the first call. If that changes after all in the steps that ``npu-shim migrate`` compares,
it takes the rewrite back. Random ops draw other numbers in a graph, also with the same seed; ``npu-shim verify`` lets both
programs draw the same if a step has one update. The finding names functions that a run could trace where one of the first
two points is open.

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

    def evaluate(model, dataset):
        for x, y in dataset:
            with tf.GradientTape() as tape:
                print(loss_of(y, model(x)))

    def update(model, gradients):
        optimizer.apply_gradients(zip(gradients, model.variables))

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

from ...analysis.changing_values import assigned_attributes, is_bound_in_loop, is_shared_list, stays
from ...analysis.device_placement import is_in_test
from ...analysis.step_blocks import StepBlock, runs_once, step_block
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import enclosing_functions, is_function_used_outside_tests, may_be_traced
from ...analysis.traceable_steps import TraceableStep, traceable_step
from ...facts.kinds import BLOCK, CALLEE, OP, STEP
from ...facts.seen import Seen
from ...rewrite.npu_imports import name_of_tensorflow
from ...rewrite.spans import Spans
from ...rewrite.step_functions import edits_to_compile_block, function_of_block
from ...semantics.mentions import mentions_of_function, reads_of_assigned_name
from ...semantics.model import Call
from ...semantics.tf_types import Type
from ...syntax.source import Edit
from ...syntax.words import has_words
from ..base import Change, Context, Finding, Question

CODE = "NPU247"
_ARGUMENTS, _RETURNED = frozenset({"tensor", "array", "none", "object"}), frozenset({"tensor", "none"})
_MOST_SHAPES = 2  # those of a full batch and of the last partial one


def check_last(context: Context, replaced: Spans) -> Iterator[Change | Finding]:
    text = context.source.text
    tapes = "GradientTape" in text and has_words(text, ("apply_gradients", ".assign_sub("))
    if not tapes and not has_words(text, (".minimize(",)) or not is_tf2_program(context):
        return
    names = context.names
    reported: set[ast.AST | None] = set()
    compiled: set[ast.AST] = set()
    for call in names.calls:
        is_tape = tapes and context.called_names.get(call.node) == "tensorflow.GradientTape"
        if not (is_tape or _minimizes_function(context, call)) or is_in_test(context, call.node):
            continue
        around = enclosing_functions(names, call.node)
        innermost = around[0] if around else None
        if innermost in reported or any(may_be_traced(names, function) for function in around):
            continue
        if not compiled.isdisjoint(names.ancestors(call.node)):
            continue  # in a step that follows another one, and is compiled with it
        if is_tape and not _is_read(context, call.node):
            continue  # an evaluation, which needs no tape
        is_in_loop = innermost is None or _is_in_loop_of(context, call.node, innermost)
        if not is_in_loop and innermost is not None and not is_function_used_outside_tests(names, innermost):
            reported.add(innermost)
            continue  # a step for code outside the project, which may trace it
        seen = context.observed_at(CODE, OP, call.node)
        if seen is not None and "eager" not in (seen.all("in") or ("eager",)):
            reported.add(innermost)
            continue
        block = step_block(context, call.node) if is_tape and is_in_loop else None
        change = None if block is None or seen is None else _change_of_block(context, call.node, block, replaced)
        if block is not None and change is not None:
            compiled.update(block.statements)
            yield change
            continue
        reported.add(innermost)
        step = traceable_step(context, innermost) if is_tape and innermost is not None and not is_in_loop else None
        calls = [context.observed_at(CODE, STEP, function) for function in step.calls] if step is not None else []
        reached = [observed for observed in calls if observed is not None]
        if (
            seen is not None
            and step is not None
            and innermost is not None
            and _could_be_traced(context, step, reached, call.node)
        ):
            tensorflow = name_of_tensorflow(names)
            stay = all(
                _gets_same_values(context, innermost, function, _words_in(observed, "numbers"))
                for function, observed in zip(step.calls, reached)
            )
            if tensorflow is not None and stay and all(map(_has_few_shapes, reached)) and len(reached) == len(calls):
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
        asks += _questions_about_block(context, call.node, block) if block is not None else ()
        yield Finding(
            call.node,
            "this training step runs operation by operation. Put it into a function with @tf.function",
            asks=tuple(asks),
        )


def _is_read(context: Context, tape: ast.Call) -> bool:
    """Return True if code may read a tape, as for gradients; that of a with statement has a name then."""
    statement = context.names.parents.get(tape)
    if not isinstance(statement, ast.With):
        return True
    target = next(item.optional_vars for item in statement.items if item.context_expr is tape)
    if not isinstance(target, ast.Name):
        return target is not None
    reads = reads_of_assigned_name(target, context.names)
    return reads is None or bool(reads)


def _questions_about_block(context: Context, tape: ast.Call, block: StepBlock) -> Iterator[Question]:
    """Yield the questions about a step in a loop, with the function that a run is to trace."""
    function = function_of_block(context, block)
    if function is not None:
        yield Question(BLOCK, tape, "\n".join(function.lines) + "\n")
        yield from (Question(CALLEE, callee) for callee in block.callees)


def _change_of_block(context: Context, tape: ast.Call, block: StepBlock, replaced: Spans) -> Change | None:
    """Return the change of a step in a loop to a function; None if observed runs do not show that it may be one.

    None, too, if another rule writes in the step.
    """
    seen, tensorflow = context.observed_at(CODE, BLOCK, tape), name_of_tensorflow(context.names)
    narrowed = seen.only("narrowed") if seen is not None else None
    function = function_of_block(context, block, narrowed) if isinstance(narrowed, tuple) else None
    if seen is None or function is None or tensorflow is None or not _has_few_shapes(seen):
        return None
    if "object" in (seen.all("arguments") or ()):
        return None  # a later fold or stage may make another model or optimizer
    if any(is_bound_in_loop(name, block.loop) for name in _words_in(seen, "numbers")):
        return None  # TensorFlow would trace the step again for each number
    if replaced.overlaps(function.start, function.end):
        return None
    if not _could_be_traced(context, TraceableStep([tape.func], block.callees), [seen], tape):
        return None
    edits = edits_to_compile_block(context, block, function, tensorflow)
    return Change(tape, "training step moved into a tf.function", edits, runs=seen.runs) if edits else None


def _has_few_shapes(seen: Seen) -> bool:
    return 0 < len(seen.all("shapes") or ()) <= _MOST_SHAPES


def _could_be_traced(context: Context, step: TraceableStep, calls: Sequence[Seen], tape: ast.Call) -> bool:
    """Return True if observed runs called the step of a tape with tensors, and could trace it in all of them."""
    traced = all(
        call.only("eager") is True
        and call.only("traces") is True
        and (_ARGUMENTS | ({"number"} if call.only("constant") is True else set())).issuperset(
            call.all("arguments") or ()
        )
        and _RETURNED.issuperset(call.all("returns") or ("other",))
        for call in calls
    )
    takes_objects = any("object" in (call.all("arguments") or ()) for call in calls)
    if takes_objects and not _gets_same_objects(context, step, calls, tape):
        return False  # a tf.function creates the variables of an optimizer in its first call only
    callees = [context.observed_at(CODE, CALLEE, callee) for callee in step.callees]
    around = enclosing_functions(context.names, tape)
    noted = [one for one in (*calls, *callees) if one is not None]
    if any(one.all("lists") is None for one in noted) or any(call.all("numbers") is None for call in calls):
        return False  # there were too many, or the facts were written before these were noted
    if any(is_shared_list(context, word, around) for one in noted for word in _words_in(one, "lists")):
        return False
    return bool(calls) and traced and all(_has_no_effect(context, callee) for callee in callees)


def _words_in(seen: Seen, attribute: str) -> set[str]:
    """Return the words of all tuples that a run noted as an attribute."""
    return {str(word) for words in seen.all(attribute) or () if isinstance(words, tuple) for word in words}


def _gets_same_values(context: Context, function: ast.FunctionDef, call: ast.expr, words: set[str]) -> bool:
    """Return True if one call gives some parameters of a function, that are no tensors, no other values later."""
    given = _given_to(context, function, call, words)
    return len(given) == len(words) and all(stays(context, part) for value in given for part in ast.walk(value))


def _given_to(context: Context, function: ast.FunctionDef, call: ast.expr, words: set[str]) -> list[ast.expr]:
    """Return what a call of a function gives to some parameters."""
    node = context.names.parents.get(call)
    assert isinstance(node, ast.Call)
    is_method = isinstance(context.names.parents.get(function), ast.ClassDef) and isinstance(call, ast.Attribute)
    parameters = [argument.arg for argument in function.args.args][is_method:]
    given = [*zip(parameters, node.args), *((keyword.arg, keyword.value) for keyword in node.keywords)]
    return [value for name, value in given if name in words]


def _gets_same_objects(context: Context, step: TraceableStep, calls: Sequence[Seen], tape: ast.Call) -> bool:
    """Return True if one call gives objects to a step, which the program makes once."""
    function = enclosing_functions(context.names, tape)[0]
    return len(step.calls) == 1 and all(
        one.all("objects") is not None
        and _are_made_once(context, function, step.calls[0], _words_in(one, "objects"), set())
        for one in calls
    )


def _are_made_once(
    context: Context, function: ast.FunctionDef, call: ast.expr, words: set[str], seen: set[ast.AST]
) -> bool:
    """Return True if all runs of a call give some parameters of a function the same objects.

    They do so, too, in a function that runs once for each epoch and gets the objects from the only call of its own.
    """
    names, around = context.names, enclosing_functions(context.names, call)
    if function in seen or not words or not _gets_same_values(context, function, call, words):
        return False
    seen.add(function)
    if not around or runs_once(names, around[0], set()):
        return True
    given = {
        value.id
        for value in _given_to(context, function, call, words)
        if isinstance(value, ast.Name) and names.only_binding(value, names.place(call), "arg") is not None
    }
    uses = mentions_of_function(around[0], names, of_objects=True) or ()
    called = [names.parents.get(use.node) for use in uses]
    outer = [node.func for node, use in zip(called, uses) if isinstance(node, ast.Call) and node.func is use.node]
    return (
        len(given) == len(words)
        and len(uses) == len(outer) == 1
        and _are_made_once(context, around[0], outer[0], given, seen)
    )


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
