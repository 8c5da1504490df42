"""Summaries built on some ranks only.

In distributed training all ranks must build the same graph, because they exchange data operation by operation. If
only some ranks build a summary, the graphs differ, and the ranks wait for each other until they time out. Build
summaries on all ranks and write them on one.

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
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...semantics.model import Call
from ..base import Context, Finding, Result

CODE = "NPU241"
CALLS = frozenset(
    "tensorflow." + name
    for name in """summary.scalar summary.histogram summary.image
summary.audio summary.text summary.tensor_summary summary.merge summary.merge_all
contrib.layers.optimize_loss""".split()
)
_RANKS = frozenset({"horovod.rank", "horovod.local_rank"}) | frozenset(
    "npu_shim.npu_init." + name
    for name in ("get_rank_id", "get_local_rank_id", "get_npu_rank_id", "get_npu_local_rank_id")
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    child: ast.AST = call.node
    for parent in context.names.ancestors(call.node):
        if (
            isinstance(parent, ast.If)
            and child is not parent.test
            and any(
                isinstance(n, ast.Call) and context.resolve(n.func, call.where) in _RANKS for n in ast.walk(parent.test)
            )
            and runs_on_npu(context, call.node)
        ):
            yield Finding(
                call.node,
                "only some ranks build this part of the graph, so the ranks deadlock. "
                "Build the summary on all ranks and write it on one",
            )
            return
        child = parent
