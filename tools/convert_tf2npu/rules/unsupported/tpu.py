"""Calls that need a TPU.

These functions exist for TPUs alone: they compile for one, configure one or exchange data among its
cores. Where a test of the script keeps them from running without a TPU (``if FLAGS.use_tpu``) all is
well and nothing is said.

Told::

    import tensorflow as tf

    losses = tf.contrib.tpu.cross_replica_sum(losses)
    step = tf.tpu.rewrite(step_fn)

Untouched::

    import tensorflow as tf

    if FLAGS.use_tpu:
        losses = tf.contrib.tpu.cross_replica_sum(losses)

Untouched::

    import tpu

    step = tpu.rewrite(step_fn)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.support import names_of
from ..base import Context, Finding, Result

CODE = "NPU211"
CALLS = names_of("tpu")
_INSTEAD = {
    "bfloat16_scope": "leave it out: mixed precision is an option of the NPU session "
    "(precision_mode_v2='mixed_float16')",
    "cross_replica_sum": "leave it out on one card, and use npu_allreduce among several",
    "initialize_system": "leave it out: the NPU session sets up its card",
    "shutdown_system": "leave it out: the NPU session gives up its card",
    "TPUStrategy": "use npu_strategy.NPUStrategy() or leave the strategy out on one card",
}


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    child: ast.AST = call.node
    for parent in context.names.ancestors(call.node):
        if (
            isinstance(parent, (ast.If, ast.IfExp))
            and child is not parent.test
            and "tpu" in context.source.segment(parent.test).lower()
        ):
            return
        if isinstance(parent, (ast.FunctionDef, ast.ClassDef)) and "tpu" in parent.name.lower():
            return  # made for a TPU, and called where there is one
        child = parent
    short = last_part(name)
    yield Finding(
        call.node,
        "{} works on a TPU only; {}".format(
            short, _INSTEAD.get(short, "leave it out, or keep it behind a test for a TPU")
        ),
    )
