"""Run TPUEstimator without a TPU in a session for the NPU.

A ``TPUEstimator`` with ``use_tpu=False`` is an Estimator with batch sizes of its own. It keeps its class, its specs
and its run configuration, and ``npu_run_config_init`` adds the NPU session configuration. A ``CrossShardOptimizer``
sums gradients over TPU shards with an operation that only a TPU has. Unless a condition around it asks for the TPU,
the rule replaces it with the optimizer inside it.

The rule reports a call whose arguments it cannot see. Disable the TPU and prepare the configuration, or remove
``CrossShardOptimizer``.

Before::

    import tensorflow.compat.v1 as tf

    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu,
        model_fn=model_fn,
        config=run_config,
        train_batch_size=FLAGS.train_batch_size)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_run_config_init

    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=False,
        model_fn=model_fn,
        config=npu_run_config_init(run_config=run_config),
        train_batch_size=FLAGS.train_batch_size,
        eval_on_tpu=False,
        export_to_tpu=False)

Before::

    import tensorflow as tf
    from tensorflow.contrib import tpu as contrib_tpu

    estimator = contrib_tpu.TPUEstimator(model_fn, None, contrib_tpu.RunConfig(), {}, True)

After::

    import tensorflow as tf
    from tensorflow.contrib import tpu as contrib_tpu
    from npu_shim.npu_init import *

    estimator = contrib_tpu.TPUEstimator(model_fn, None, npu_run_config_init(run_config=contrib_tpu.RunConfig(save_summary_steps=0)), {}, False, eval_on_tpu=False, export_to_tpu=False)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=npu_run_config_init(run_config=c), use_tpu=False, eval_on_tpu=False,
        export_to_tpu=False)

Before::

    import tensorflow as tf

    def model_fn(features, labels, mode, params):
        optimizer = tf.train.AdamOptimizer()
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
        train_op = tf.tpu.CrossShardOptimizer(opt=params['optimizer'], reduction='sum').minimize(loss)

After::

    import tensorflow as tf

    def model_fn(features, labels, mode, params):
        optimizer = tf.train.AdamOptimizer()
        train_op = params['optimizer'].minimize(loss)

Untouched::

    import tensorflow as tf

    if params['use_tpu']:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    spec = tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

Untouched::

    import tensorflow as tf
    from mycompany.training import CrossShardOptimizer

    optimizer = CrossShardOptimizer(optimizer)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.run_configs import type_after_conversion
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap, is_one_statement
from ...rewrite.removal import remove_statements
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import Type
from ...syntax.expressions import boxed_constant
from ...syntax.source import Edit
from ...tf_api.name_tables import PARAMETERS
from ..base import Change, Context, Finding, Result

CODE = "NPU111"
_ROOTS = ("tensorflow.estimator.tpu.", "tensorflow.contrib.tpu.", "tensorflow.tpu.")
_SIGNATURE = PARAMETERS["tensorflow.estimator.tpu.TPUEstimator"]
_CROSS_SHARD = ("opt", "reduction", "name", "group_assignment")
_OFF = ("use_tpu", "eval_on_tpu", "export_to_tpu")
CALLS = frozenset(root + name for root in _ROOTS for name in ("TPUEstimator", "CrossShardOptimizer"))


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if name.endswith("CrossShardOptimizer"):
        if not _asks_for_tpu(context, call.node):
            yield _replace_cross_shard_optimizer(context, call)
        return
    source = context.source
    bound = bind_arguments(call.node, _SIGNATURE)
    if bound.hidden or bound.unknown:
        yield Finding(
            call.node,
            "some arguments of TPUEstimator are not visible. Pass use_tpu=False, eval_on_tpu=False, "
            "export_to_tpu=False and config=npu_run_config_init(run_config=...)",
        )
        return
    edits: list[Edit] = []
    uses: list[str] = []
    config = bound.args.get("config")
    if config is None:
        missing = ["config=npu_run_config_init()"]
        uses.append("npu_run_config_init")
    else:
        missing = []
        if type_after_conversion(context, config, call.where) != Type.PREPARED_RUN_CONFIG:
            edits += edits_to_wrap(source, config, "npu_run_config_init(run_config=", ")")
            uses.append("npu_run_config_init")
    for argument in _OFF:
        value = bound.args.get(argument)
        if value is None:
            missing.append(argument + "=False")
        elif boxed_constant(value) != (False,):
            edits.append(edit_to_rename(source, value, "False"))
    if missing:
        added = edit_to_add_argument(source, call.node, *missing)
        if added is None:
            return
        edits.append(added)
    if edits:
        yield Change(call.node, "TPUEstimator runs without a TPU in a session for the NPU", tuple(edits), tuple(uses))


def _asks_for_tpu(context: Context, node: ast.AST) -> bool:
    """Return True if code runs only under a condition that names the TPU, or XLA, which compiles for it."""
    conditions = [p.test for p in context.names.ancestors(node) if isinstance(p, (ast.If, ast.IfExp))]
    return any(re.search("tpu|xla", context.source.segment(test), re.IGNORECASE) for test in conditions)


def _replace_cross_shard_optimizer(context: Context, call: Call) -> Result:
    """Replace a CrossShardOptimizer with the optimizer inside it."""
    source, statement = context.source, call.where.statement
    bound = bind_arguments(call.node, _CROSS_SHARD)
    inner = bound.args.get("opt")
    if inner is None or bound.hidden or bound.unknown:
        return Finding(call.node, "CrossShardOptimizer requires a TPU. Use the optimizer inside it")
    message = "CrossShardOptimizer removed"
    if (
        isinstance(statement, ast.Assign)
        and statement.value is call.node
        and len(statement.targets) == 1
        and ast.dump(inner) == ast.dump(statement.targets[0]).replace("Store", "Load")
    ):
        return Change(call.node, message, tuple(remove_statements(source, context.names, [statement])))
    plain = isinstance(inner, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) and is_one_statement(
        source.segment(inner)
    )
    return Change(
        call.node,
        message,
        (
            Edit(source.start(call.node), source.start(inner), "" if plain else "("),
            Edit(source.end(inner), source.end(call.node), "" if plain else ")"),
        ),
    )
