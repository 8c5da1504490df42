"""Lookup tables and accumulators.

A lookup table is in the memory of the host. The rule reports each kind of table once for each file.

* In TensorFlow 1, the session initializes a table, and the NPU runs that unless an option says otherwise. The lookup in
  ``dataset.map`` runs on the host and fails with ``Table not initialized``; in the model it has no operation. Set
  ``mix_compile_mode=True`` on the session or in ``NPURunConfig``: then tables are initialized and read on the host. This
  needs ``iterations_per_loop=1``, and with batch normalization ``with
  tf.compat.forward_compatibility_horizon(2019, 5, 1):`` around the model. A file that names ``mix_compile_mode`` is not
  reported. With facts of ``npu-shim observe``, NPU101 writes the option for each ``tf.Session`` that used a table, and
  NPU102 for the configuration of one Estimator with tables in its graph, in a program of one file without batch
  normalization and Keras.
* In TensorFlow 2, a table is initialized where it is made. Look up in the function that ``dataset.map`` calls; a table
  that only such functions use is not reported.
* Accumulators of gradients (``ConditionalAccumulator``, ``SyncReplicasOptimizer``) work, but each use copies memory between
  host and NPU. The same option keeps them on the host.

Reported::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        table = tf.contrib.lookup.index_table_from_file('vocabulary.txt')
        ids = table.lookup(features['words'])

Reported::

    import tensorflow as tf

    def input_fn():
        table = tf.contrib.lookup.index_table_from_file('vocabulary.txt')
        return tf.data.TextLineDataset(files).map(lambda line: table.lookup(line))

Reported::

    import tensorflow as tf

    sums = tf.ConditionalAccumulator(tf.float32, [3])
    training = tf.layers.batch_normalization(tf.constant(sums.num_accumulated()))

Reported::

    import tensorflow as tf
    from tensorflow.python.ops import data_flow_ops

    sums = data_flow_ops.ConditionalAccumulator(tf.float32, [3])

Untouched::

    import tensorflow as tf

    table = tf.contrib.lookup.index_table_from_file('vocabulary.txt')
    config = NPURunConfig(mix_compile_mode=True)

Untouched::

    import tensorflow as tf

    table = tf.lookup.StaticHashTable(initializer, 0)
    for words in tf.data.TextLineDataset(files).map(lambda line: table.lookup(line)):
        step(words)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_first_call, is_in_test, runs_on_npu
from ...analysis.host_operators import (
    TABLE_MAKERS,
    TABLES,
    estimator_config_of_file,
    runs_with_tables_in_estimator,
    sessions_of_file,
)
from ...analysis.mixed_computing import OPTION, advice_for_batch_normalization
from ...analysis.tensorflow_version import is_tf2_program
from ...facts.kinds import OP, SESSION, VALUE
from ...rewrite.session_config import writes_mixed_computing
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ..base import Context, Finding, Question

CODE = "NPU240"
_ACCUMULATORS = frozenset(
    f"tensorflow.{name}"
    for name in (
        *(
            f"{home}{kind}ConditionalAccumulator"
            for home in ("", "raw_ops.", "python.ops.data_flow_ops.")
            for kind in ("", "Sparse", "Resource")
        ),
        "train.SyncReplicasOptimizer",
    )
)
CALLS = TABLE_MAKERS | _ACCUMULATORS


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    kind = frozenset({name})
    if name in _ACCUMULATORS:
        if (
            not is_tf2_program(context)
            and OPTION not in context.source.text
            and runs_on_npu(context, call.node)
            and is_first_call(context, call, kind, context.names.tree)
        ):
            yield Finding(
                call.node,
                "each use of {0} copies memory to the host. Set mix_compile_mode=True{1}",
                last_part(name),
                advice_for_batch_normalization(context),
            )
    elif is_tf2_program(context):
        if (
            runs_on_npu(context, call.node)
            and is_first_call(context, call, kind, context.names.tree)
            and not _is_for_input(context, call)
        ):
            yield Finding(call.node, "lookup tables are unsupported on the NPU. Look up in dataset.map")
    elif (
        is_first_call(context, call, kind, context.names.tree, on_npu=False)
        and not is_in_test(context, call.node)
        and OPTION not in context.source.text
        and not writes_mixed_computing(context, TABLES)
        and runs_with_tables_in_estimator(context) is None
    ):
        config = estimator_config_of_file(context)
        of_estimator = (Question(OP, call.node), Question(VALUE, config)) if config is not None else ()
        yield Finding(
            call.node,
            "the NPU initializes this lookup table, which is read on the host. "
            "Set mix_compile_mode=True on the session{0}",
            advice_for_batch_normalization(context),
            asks=(*(Question(SESSION, session) for session in sessions_of_file(context)), *of_estimator),
        )


def _is_for_input(context: Context, call: Call) -> bool:
    """Return True if all uses of the name of a table are in code for input, and at least one is."""
    statement = context.names.parents.get(call.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    uses = [
        read
        for read, where in context.names.reads
        if read.id == target.id
        and isinstance(context.names.parents.get(read), ast.Attribute)
        and where.scope is not context.names.module  # where scripts try it
    ]
    return bool(uses) and not any(runs_on_npu(context, use) for use in uses)
