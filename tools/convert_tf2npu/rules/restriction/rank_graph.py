"""Operations built on some ranks only.

In distributed training all ranks must build the same graph, because they exchange data operation by operation. If
only some ranks build a summary, a metric or another operation, the graphs differ, the NPU numbers its collectives
otherwise on these ranks, and the ranks wait for each other until they time out. Build it on all ranks, and write or print
its value on one.

The rule reports the first operation under each test of the rank; besides summaries, only where code builds a graph: in
TensorFlow 1, and in ``tf.function``. ``if rank != 0: return`` is a test of all that follows. Initializers, seeds, and a graph of its own are no part of what ranks share.

Reported::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    if hvd.rank() == 0:
        tf.summary.scalar('loss', loss)

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import get_rank_id

    if get_rank_id() == 0:
        merged = tf.summary.merge_all()

Reported::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    def model_fn(features, labels, mode):
        rank = hvd.rank()
        is_chief = rank == 0
        if is_chief:
            accuracy = tf.reduce_mean(tf.cast(tf.equal(labels, features), tf.float32))
        return tf.estimator.EstimatorSpec(mode, loss=tf.losses.mean_squared_error(labels, features))

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import get_rank_id

    @tf.function
    def step(x):
        if get_rank_id() == 0:
            tf.print('loss', x)
        return model(x)

Reported::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    def is_chief():
        return not FLAGS.distributed or hvd.rank() == 0

    class Trainer:
        def __init__(self):
            self.is_first = hvd.rank() % hvd.local_size() == 0

        def build(self, loss):
            if self.is_first:
                loss = tf.identity(loss)
            return loss

    if is_chief():
        def log(loss):
            tf.summary.scalar('loss', loss)

    x = tf.placeholder(tf.float32, [8])

Reported::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    def build_evaluation(logits, labels):
        if hvd.rank() != 0:
            return None
        correct = tf.equal(tf.argmax(logits, 1), labels)
        return tf.reduce_mean(tf.cast(correct, tf.float32))

    x = tf.placeholder(tf.float32, [8])

Reported::

    import os
    import tensorflow as tf

    x = tf.placeholder(tf.float32, [8])
    total = tf.reduce_sum(x) if int(os.getenv('RANK_ID', '0')) == 0 else x

Untouched::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    def evaluate(path):
        if hvd.rank() != 0:
            return
        with tf.Graph().as_default():
            scores = tf.nn.softmax(tf.constant([0.5]))

    def check():
        if hvd.rank() > 7:
            raise ValueError('too many ranks')
        return tf.identity(x)

    x = tf.placeholder(tf.float32, [8])

Untouched::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    x = tf.placeholder(tf.float32, [8])
    seed = 42 + hvd.rank()
    params = {'rank': hvd.rank(), 'fp16': FLAGS.fp16}
    hparams = HParams(rank=hvd.rank())
    files = tf.data.Dataset.list_files(FLAGS.files).shard(hvd.size(), hvd.rank())
    fp16 = params['fp16']
    if params['fp16'] or fp16 or hparams.clip:
        x = tf.cast(x, tf.float16)
    if seed is not None and files is not None:
        x = tf.identity(x)

Untouched::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    x = tf.placeholder(tf.float32, [8])
    if hvd.rank() == 0:
        tf.random.set_random_seed(1)
        sess.run(tf.initializers.global_variables_initializer())
        with tf.Graph().as_default():
            scores = tf.nn.softmax(tf.constant([0.5]))

Untouched::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    if hvd.rank() == 0:
        print(tf.reduce_mean(step(x)))

Untouched::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    tf.summary.scalar('loss', loss)
    if hvd.rank() == 0:
        writer = tf.summary.FileWriter(FLAGS.model_dir)

Untouched::

    import tensorflow as tf

    if ranking == 0:
        tf.summary.scalar('loss', loss)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import is_traced
from ...semantics.call_sites import values_passed_to_parameter
from ...semantics.model import Where
from ...semantics.module_index import ModuleIndex, Names
from ...semantics.scopes import own_returns
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, index_of, is_none
from ..base import Context, Finding

CODE = "NPU241"
_SUMMARIES = frozenset(
    "tensorflow." + name
    for name in """summary.scalar summary.histogram summary.image
summary.audio summary.text summary.tensor_summary summary.merge summary.merge_all
contrib.layers.optimize_loss""".split()
)
_RANKS = frozenset({"horovod.rank", "horovod.local_rank"}) | frozenset(
    "npu_shim.npu_init." + name
    for name in ("get_rank_id", "get_local_rank_id", "get_npu_rank_id", "get_npu_local_rank_id")
)
_OPERATIONS = re.compile(
    r"tensorflow\.(?:(?:math|nn|linalg|image|losses|metrics|layers|signal|strings|sparse|debugging|random)\.[a-z]\w*|"
    r"Print|Variable|abs|accumulate_n|add|add_n|argmax|argmin|assert_\w+|assign\w*|boolean_mask|cast|clip_by_\w+|concat|"
    r"cond|confusion_matrix|constant|div\w*|einsum|equal|exp\w*|gather\w*|get_variable|greater\w*|identity|less\w*|"
    r"log\w*|matmul|maximum|minimum|multiply|norm|not_equal|ones\w*|one_hot|pow|print|py_func\w*|numpy_function|range|"
    r"reduce_\w+|reshape|round|sigmoid|sqrt|square\w*|squeeze|stack|strings?_\w+|subtract|tanh|transpose|where|"
    r"while_loop|zeros\w*)"
)
_NO_PART = re.compile(r"_initializer\Z|seed\Z")
_VARIABLES = frozenset({"RANK_ID", "RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK"})
_HOMES = (b"horovod", b"npu_")


def check_file(context: Context) -> Iterator[Finding]:
    if not _may_ask_for_rank(context):
        return
    reported: set[ast.AST] = set()
    for node, name in context.called_names.items():
        is_summary = name in _SUMMARIES
        if not is_summary and (not _OPERATIONS.fullmatch(name) or _NO_PART.search(name)):
            continue
        test = _rank_test_around(context, node, is_summary)
        if test is None or (test in reported and not is_summary) or not runs_on_npu(context, node):
            continue
        if is_summary or _builds_graph(context, node):
            reported.add(test)
            where = (
                "Build the summary on all ranks and write it on one"
                if is_summary
                else "Build it on all ranks and write its value on one"
            )
            yield Finding(node, "only some ranks build this part of the graph, so the ranks deadlock. {0}", where)


def _may_ask_for_rank(context: Context) -> bool:
    """Return True if a file, one that it imports, or one that imports it calls a function for the rank."""
    if _mentions_rank(context.source.raw):
        return True
    names = context.names
    naming = names.project.once(_files_naming_rank)
    return not (naming.isdisjoint(names.imported_files) and naming.isdisjoint(names.importing_files))


def _files_naming_rank(project: ModuleIndex) -> frozenset[str]:
    return frozenset(path for path in project.paths if _mentions_rank(project.raw(path)))


def _mentions_rank(raw: bytes) -> bool:
    return (
        b"RANK" in raw or any(call in raw for call in (b"rank(", b"rank_id(")) and any(home in raw for home in _HOMES)
    )


def _builds_graph(context: Context, node: ast.Call) -> bool:
    return not is_tf2_program(context) or is_traced(context.names, node)


def _rank_test_around(context: Context, node: ast.Call, through_functions: bool) -> ast.If | ast.IfExp | None:
    """Return the test of the rank under which a call is, unless it builds a graph of its own there.

    Args:
        context: the file.
        node: the call.
        through_functions: look around the function of the call, too.
    """
    names = context.names
    graphs: list[ast.Call] = []
    child: ast.AST = node
    for parent in names.ancestors(node):
        leaving = _rank_test_leaving_block(context, parent, child)
        if leaving is not None:
            return None if any(graph.lineno > leaving.lineno for graph in graphs) else leaving
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and not through_functions:
            return None
        if isinstance(parent, ast.With):
            graphs += _graph_calls_of(context, parent)
        if (
            isinstance(parent, (ast.If, ast.IfExp))
            and child is not parent.test
            and context.once(_is_test_of_rank, parent)
        ):
            return None if any(parent in names.ancestors(graph) for graph in graphs) else parent
        child = parent
    return None


def _rank_test_leaving_block(context: Context, parent: ast.AST, child: ast.AST) -> ast.If | None:
    """Return the test of the rank before a statement of a block with which some ranks leave the block."""
    for block in (getattr(parent, "body", None), getattr(parent, "orelse", None), getattr(parent, "finalbody", None)):
        if isinstance(block, list) and child in block:
            for statement in block[: block.index(child)]:
                if isinstance(statement, ast.If) and isinstance(
                    statement.body[-1], (ast.Return, ast.Continue, ast.Break)
                ):
                    if context.once(_is_test_of_rank, statement):
                        return statement
    return None


def _graph_calls_of(context: Context, block: ast.With) -> Iterator[ast.Call]:
    """Yield the calls that make the graphs which a block builds."""
    for item in block.items:
        entered = item.context_expr
        if isinstance(entered, ast.Call) and isinstance(entered.func, ast.Attribute):
            graph, where = entered.func.value, context.names.place(entered)
            binding = context.names.only_binding(graph, where, "value")
            maker = graph if binding is None else binding.node
            if entered.func.attr == "as_default" and isinstance(maker, ast.Call):
                if context.resolve(maker.func, where if binding is None else binding.where) == "tensorflow.Graph":
                    yield maker


def _is_test_of_rank(context: Context, test: ast.If | ast.IfExp) -> bool:
    return _asks_for_rank(test.test, context.names.place(test), context.names)


def _asks_for_rank(value: ast.AST | None, where: Where, names: Names, deepest: int = 4) -> bool:
    """Return True if a value is the rank or a test of it, through no more than some names and functions."""
    parts: list[ast.expr] = []
    if isinstance(value, ast.Compare):
        parts = [value.left, *value.comparators]
        parts = [] if any(map(is_none, parts)) else parts
    elif isinstance(value, ast.BoolOp):
        parts = value.values
    elif isinstance(value, ast.IfExp):
        parts = [value.test, value.body, value.orelse]
    elif isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        parts = [value.operand]
    elif isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mod, ast.FloorDiv)):
        parts = [value.left]
    elif isinstance(value, ast.Call) and names.resolve(value.func, where) in _RANKS:
        return True
    elif _environment_variable_read(value, where, names) in _VARIABLES:
        return True
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("bool", "int"):
        parts = value.args
    elif deepest and isinstance(value, (ast.Attribute, ast.Call, ast.Name)):
        return any(_asks_for_rank(*source, deepest - 1) for source in _value_sources(value, where, names))
    return any(_asks_for_rank(part, where, names, deepest) for part in parts)


def _environment_variable_read(value: ast.AST | None, where: Where, names: Names) -> str:
    """Return the name of the environment variable that an expression reads."""
    key: ast.AST | None = None
    if isinstance(value, ast.Call) and names.resolve(value.func, where) in ("os.getenv", "os.environ.get"):
        key = value.args[0] if value.args else None
    elif isinstance(value, ast.Subscript) and names.resolve(value.value, where) == "os.environ":
        key = index_of(value)
    text = boxed_constant(key)
    return str(text[0]) if text else ""


def _value_sources(value: ast.expr, where: Where, names: Names) -> Iterator[tuple[ast.AST | None, Where, Names]]:
    """Yield what a name, an attribute of an object, or a call of a function of the project stands for."""
    if isinstance(value, ast.Call):
        function = names.function_definition(value.func, where)
        if function is not None:
            for returned in own_returns(function.node):
                yield returned.value, function.names.places[returned], function.names
        return
    if isinstance(value, ast.Attribute):
        owner = names.owner_class(value.value, where)
        held = owner.names.attribute_bindings(owner.node, value.attr) if owner is not None else []
        bound = [(binding, its_names) for binding, its_names in held]
    else:
        bound = [(binding, names) for binding in names.bindings_of_name(getattr(value, "id", ""), where) or ()]
    for binding, its_names in bound:
        if binding.kind == "value":
            yield binding.node, binding.where, its_names
        elif binding.kind == "arg":
            yield from values_passed_to_parameter(binding, its_names) or ()
        elif binding.kind in ("import", "part"):
            yield from (origin for origin in origins(value, where, names) if not isinstance(origin.node, ast.Name))
