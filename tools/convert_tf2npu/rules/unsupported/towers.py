"""Towers: one process that drives several GPUs.

Such a script splits the batch, builds the model once for each GPU, and averages the gradients. A process for the NPU
has one device, which computes all towers one after the other: the step takes as long as one tower with the whole
batch, and the graph is several times as large.

Build one tower, with the batch of one device, and start one rank per device:

1. Set the number of GPUs to 1. The finding names the flag or the variable, if the tool finds it.
2. Run the tool with ``-d tf_strategy`` or ``-d auto``. The gradients are then averaged over the ranks once, where the script applies
   the average of its towers (see NPU305), and the average over one tower changes nothing. Where the tool cannot trace
   that, each tower has its own all-reduce for the same variables, and the finding says so.
3. Start the script with ``npu-shim launch --ranks N``. Give each rank its own examples (see NPU252).

The rule reports one loop or comprehension of each file for each number of GPUs, also where it calls a function of the
file that builds the tower. It reports the number of clones of ``model_deploy`` of TF-Slim, too. It does not report loops
that place the layers of one model on several GPUs: one NPU computes such a model as it is.

With facts of ``npu-shim observe``, the rule does not report loops and ``model_deploy`` that built at most one tower in all
observed runs.

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

Reported::

    import tensorflow as tf

    def tower(device, part):
        with tf.device('/gpu:%d' % device):
            return tf.gradients(loss_of(part), variables)

    gradients = [tower(i, part) for i, part in enumerate(tf.split(images, FLAGS.gpus))]

Reported::

    import tensorflow as tf
    from deployment import model_deploy

    config = model_deploy.DeploymentConfig(num_clones=FLAGS.num_clones, clone_on_cpu=False)

Untouched::

    import tensorflow as tf

    for i in range(layers):
        with tf.device('/job:localhost/task:%d' % i):
            cells.append(tf.nn.rnn_cell.LSTMCell(512))

Untouched::

    import tensorflow as tf

    def place(op, device='/gpu:0'):
        with tf.device(device):
            return loss_of(op)

    losses = [place(op) for op in ops]

Untouched::

    import tensorflow as tf
    from deployment import model_deploy

    config = model_deploy.DeploymentConfig(num_clones=1)

Untouched::

    import tensorflow as tf

    for part in tf.split(images, 4):
        with tf.device('/cpu:0'):
            gradients.append(tf.gradients(loss_of(part), variables))
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ...analysis.command_line_flags import flags_read_by
from ...analysis.device_placement import enclosing_function, is_in_test
from ...analysis.gpu_names import numbers_in_gpu_names
from ...analysis.gradient_sources import SAME_LENGTH
from ...analysis.gradients import averages_gradients
from ...facts.kinds import SHAPE, VALUE
from ...semantics.model import Call, Where
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_name, values_of
from ..base import Change, Context, Finding, Message, Question

CODE = "NPU256"
SHOWS = "tf_strategy"
_DEVICE, _SCOPE = "tensorflow.device", "tensorflow.name_scope"
_BUILDS = re.compile(
    r"tower|clone|replica|model|\bnet|infer|forward|output|reuse|loss(?!_?scal)|(?<!apply_)gradients?\(", re.IGNORECASE
)
_REPEATS = re.compile(r"reuse|(?<!apply_)gradients?\(")
_OF_DEVICES = re.compile("gpu|tower|clone|devices", re.IGNORECASE)
_SCOPE_OF_TOWER = re.compile(r"(?:tower|gpu|clone|replica)_?(?:%[dis]|{)", re.IGNORECASE)
_RANGES = frozenset({"range", "xrange", "arange"})


class _Count(NamedTuple):
    """An expression that decides the number of iterations: a number, or a sequence with one element for each."""

    node: ast.expr
    where: Where
    is_number: bool


class _Loop(NamedTuple):
    """A loop or a comprehension, one of the sequences that it runs over, and the code of an iteration."""

    node: ast.AST
    target: ast.expr
    iter: ast.expr
    body: list[ast.AST]


def check_file(context: Context) -> Iterator[Change | Finding]:
    if "model_deploy" in context.source.text:
        yield from _findings_of_clones(context)
    if _DEVICE not in context.called_names.values():
        return
    reported: set[str] = set()
    for call in context.names.calls:
        name = context.called_names.get(call.node)
        if name == _SCOPE:
            if not call.node.args or not _SCOPE_OF_TOWER.search(context.source.segment(call.node.args[0])):
                continue
        elif name != _DEVICE:
            continue
        loop = _loop_of_towers(context, call)
        advice = _advice_for_loop(context, loop) if loop is not None else ""
        if loop is not None and advice and advice not in reported and not is_in_test(context, loop.node):
            reported.add(advice)
            sequence = _sequence_of_known_length(loop.iter)
            seen = context.observed_at(CODE, VALUE, sequence)
            if seen is not None and seen.all("length") in ((0,), (1,), (0, 1), (1, 0)):
                continue
            note = ""
            if context.distributed == "tf_strategy" and _averages_gradients(context, loop):
                note = ", each with its own all-reduce"
            yield _finding_of_towers(loop.node, note, advice)._replace(asks=(Question(VALUE, sequence),))


def _sequence_of_known_length(node: ast.expr) -> ast.expr:
    """Return the sequence that decides the number of iterations over an expression, if its length is known."""
    while isinstance(node, ast.Call) and node.args and last_name(node.func) in SAME_LENGTH:
        node = node.args[0]
    return node


def _averages_gradients(context: Context, loop: _Loop) -> bool:
    """Return True if each iteration averages gradients over the ranks."""
    calls = (call for part in (loop.node, *loop.body) for call in ast.walk(part) if isinstance(call, ast.Call))
    return any(averages_gradients(context, call) for call in calls if "gradients" in last_name(call.func))


def _finding_of_towers(node: ast.AST, note: str, advice: str) -> Finding:
    return Finding(
        node, "one NPU computes these towers one after the other{0}. {1}, and start one rank per device", note, advice
    )


def _findings_of_clones(context: Context) -> Iterator[Change | Finding]:
    """Yield findings for the towers of TF-Slim, which builds them in a file of its own."""
    for call in context.names.calls:
        if last_name(call.node.func) == "DeploymentConfig" and not is_in_test(context, call.node):
            given = [*call.node.args[:1], *(k.value for k in call.node.keywords if k.arg == "num_clones")]
            advice = _advice_to_set_to_one(context, _Count(given[0], call.where, True)) if given else ""
            seen = context.observed_at(CODE, SHAPE, given[0]) if given else None
            if advice and (seen is None or seen.only("number") != 1):
                yield _finding_of_towers(call.node, "", advice)._replace(asks=(Question(SHAPE, given[0]),))


def _loop_of_towers(context: Context, call: Call) -> _Loop | None:
    """Return the loop that builds a tower on the device, or in the scope, of a call; None if there is none."""
    given: list[ast.expr] = values_of(call.node)
    for loop in _loops_deciding(context, call.node, given, []):
        if context.called_names[call.node] == _SCOPE:
            return loop if _OF_DEVICES.search(context.source.segment(loop.iter)) else None
        return loop if _builds_towers(context, given, loop) else None
    return None


def _loops_deciding(
    context: Context, node: ast.AST, expressions: list[ast.expr], body: list[ast.AST]
) -> Iterator[_Loop]:
    """Yield the loops around a node, or around the calls of its function, that decide one of the given expressions.

    Args:
        context: of the file.
        node: an expression.
        expressions: the expressions; those that names among them stand for are added.
        body: the body of the function that is called in the loop.
    """
    for around in context.names.ancestors(node):
        if isinstance(around, (ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return
        if isinstance(around, (ast.For, ast.FunctionDef)):
            for statement in ast.walk(around):  # device = '/gpu:%d' % i
                if isinstance(statement, ast.Assign) and _variable_names(expressions) & _variable_names(
                    statement.targets
                ):
                    expressions.append(statement.value)
        for loop in _loops_in_node(around, body):
            if _variable_names(expressions) & _variable_names([loop.target]):
                yield loop
        if isinstance(around, ast.FunctionDef):
            if not body:
                for call, values in _calls_with_arguments(context, around, _variable_names(expressions)):
                    expressions.extend(values)
                    yield from _loops_deciding(context, call, values, [*around.body])
            return


def _loops_in_node(node: ast.AST, body: list[ast.AST]) -> Iterator[_Loop]:
    if isinstance(node, ast.For):
        yield _Loop(node, node.target, node.iter, body or [*node.body])
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
        for generator in node.generators:
            yield _Loop(node, generator.target, generator.iter, body or [node])


def _calls_with_arguments(
    context: Context, function: ast.FunctionDef, words: set[str]
) -> Iterator[tuple[ast.Call, list[ast.expr]]]:
    """Yield the calls of a function in its file, with the values of the parameters that have these names."""
    names = [argument.arg for argument in function.args.args]
    for call in context.names.calls:
        func = call.node.func
        if last_name(func) == function.name and not any(isinstance(value, ast.Starred) for value in call.node.args):
            positions = names[1:] if names[:1] == ["self"] and isinstance(func, ast.Attribute) else names
            passed = [*zip(positions, call.node.args), *((k.arg, k.value) for k in call.node.keywords)]
            values = [value for name, value in passed if name in words]
            if values:
                yield call.node, values


def _text_of_nodes(context: Context, nodes: list[ast.AST]) -> str:
    return "\n".join(map(context.source.segment, nodes))


def _builds_towers(context: Context, device: list[ast.expr], loop: _Loop) -> bool:
    """Return True if the iterations of a loop are replicas of one model on several GPUs."""
    if any(isinstance(n, (ast.Mod, ast.FloorDiv)) for part in device for n in _operators_in_device(part)):
        return False  # the layers of one model
    segment = context.source.segment
    body = _text_of_nodes(context, loop.body)
    if "grad" in segment(loop.iter):
        return False  # updates with what towers have computed
    of_gpus = any(numbers_in_gpu_names(part) or "gpu" in segment(part).lower() for part in [*device, loop.iter])
    return bool((_BUILDS if of_gpus else _REPEATS).search(body))


def _operators_in_device(device: ast.expr) -> Iterator[ast.operator]:
    """Yield the operators of the number in a device name, or of any other expression."""
    for part in numbers_in_gpu_names(device) or [device]:
        yield from (n.op for n in ast.walk(part) if isinstance(n, ast.BinOp) and boxed_constant(n.left) is None)


def _advice_for_loop(context: Context, loop: _Loop) -> str:
    """Return how to build one tower; empty if the script builds only one."""
    around = [loop.node, *context.names.ancestors(loop.node)]
    where = next(context.names.places[node] for node in around if node in context.names.places)
    return _advice_to_set_to_one(context, _length_expression(context, loop.iter, where), loop)


def _advice_to_set_to_one(context: Context, count: _Count, loop: _Loop | None = None) -> str:
    sources = origins(count.node, count.where, context.names)
    values = [boxed_constant(origin.node) for origin in sources]
    if values and all(value == (1,) for value in values):
        return ""
    flags = flags_read_by(context, [origin.node for origin in sources]) if len(sources) == 1 else set()
    if not flags and _OF_DEVICES.search(last_name(count.node)):
        flags = flags_read_by(context, [count.node])
    is_number = count.is_number
    if loop is not None and not flags and not isinstance(count.node, (ast.Name, ast.Attribute)):
        flags, is_number = flags_read_by(context, _parts_of_splits(context, loop)), True
    if len(flags) == 1:
        return Message("Run with {0}=1", flags.pop()) if is_number else Message("Name one device in {0}", flags.pop())
    if isinstance(count.node, (ast.Name, ast.Attribute)):
        written = context.source.segment(count.node)
        return Message("Set {0} to 1", written) if count.is_number else Message("Keep one element in {0}", written)
    return "Build one tower"


def _parts_of_splits(context: Context, loop: _Loop) -> list[ast.AST]:
    """Return the numbers of parts into which the function around a loop splits a batch."""
    function = enclosing_function(context, loop.node)
    return [
        origin.node
        for call in context.names.calls
        if context.called_names.get(call.node) == "tensorflow.split" and len(call.node.args) > 1
        if enclosing_function(context, call.node) is function
        for origin in origins(call.node.args[1], call.where, context.names)
    ]


def _length_expression(context: Context, node: ast.expr, where: Where, depth: int = 0) -> _Count:
    """Return the expression that decides how many elements a sequence has, as far as it is known."""
    if isinstance(node, ast.ListComp):
        return _length_expression(context, node.generators[0].iter, where)
    if isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(e, ast.Starred) for e in node.elts):
        return _Count(ast.Constant(value=len(node.elts)), where, True)
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        word = last_name(node.func)
        if word in _RANGES:
            end = node.args[0 if len(node.args) == 1 else 1]
            if isinstance(end, ast.Call) and last_name(end.func) == "len" and end.args:
                return _length_expression(context, end.args[0], where, depth)
            return _Count(end, where, True)
        if word in SAME_LENGTH:
            return _length_expression(context, node.args[0], where, depth)
        if context.resolve(node.func, where) == "tensorflow.split" and len(node.args) > 1:
            return _Count(node.args[1], where, True)
    if isinstance(node, ast.Name) and depth < 5:
        sources = origins(node, where, context.names)
        if len(sources) == 1 and sources[0].names is context.names and sources[0].node is not node:
            inner = _length_expression(context, sources[0].node, sources[0].where, depth + 1)  # type: ignore[arg-type]
            return inner if inner.is_number else _Count(node, where, False)
    return _Count(node, where, False)


def _variable_names(nodes: list[ast.expr]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
