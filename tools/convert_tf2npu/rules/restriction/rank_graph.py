"""Operations built on some ranks only.

In distributed training all ranks must build the same graph, because they exchange data operation by operation. If
only some ranks build a summary, a metric or another operation, the graphs differ, the NPU numbers its collectives
otherwise on these ranks, and the ranks wait for each other until they time out. Build it on all ranks, and write or print
its value on one.

The rule reports the first operation under each test of the rank; besides summaries, only where code builds a graph: in
TensorFlow 1, and in ``tf.function``.

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
from ...analysis.tensorflow_version import is_two
from ...analysis.tf_functions import is_traced
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.value_flow import origins
from ..base import Context, Finding, Result

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


def check_file(context: Context) -> Iterator[Result]:
    if "rank" not in context.source.text:
        return
    reported: set[ast.AST] = set()
    for call in context.names.calls:
        name = context.called.get(call.node, "")
        is_summary = name in _SUMMARIES
        if not is_summary and not _OPERATIONS.fullmatch(name):
            continue
        test = _test_of_rank(context, call)
        if test is None or (test in reported and not is_summary) or not runs_on_npu(context, call.node):
            continue
        if is_summary or _builds_graph(context, call):
            reported.add(test)
            where = (
                "Build the summary on all ranks and write it on one"
                if is_summary
                else "Build it on all ranks and write its value on one"
            )
            yield Finding(call.node, "only some ranks build this part of the graph, so the ranks deadlock. {0}", where)


def _builds_graph(context: Context, call: Call) -> bool:
    return not is_two(context) or is_traced(context.names, call.node)


def _test_of_rank(context: Context, call: Call) -> ast.If | None:
    """Return the test of the rank under which a call is, in its function."""
    child: ast.AST = call.node
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if (
            isinstance(parent, ast.If)
            and child is not parent.test
            and _depends_on_rank(parent.test, call.where, context.names)
        ):
            return parent
        child = parent
    return None


def _depends_on_rank(value: ast.AST, where: Where, names: Names, deepest: int = 3) -> bool:
    """Return True if a value is computed from the rank, by no more than some names."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and names.resolve(node.func, where) in _RANKS:
            return True
        if deepest and isinstance(node, ast.Name):
            sources = [origin for origin in origins(node, where, names) if not isinstance(origin.node, ast.Name)]
            if any(_depends_on_rank(source.node, source.where, source.names, deepest - 1) for source in sources):
                return True
    return False
