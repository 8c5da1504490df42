"""Summaries in the model of an Estimator.

The training step on the NPU cannot write summaries, so ``NPURunConfig`` sets ``save_summary_steps=0`` by default. The
rule reports one finding for each file. To write summaries, choose one of these ways:

* Return ``NPUEstimatorSpec(mode, ..., host_call=(write_summaries, [loss]))`` and call ``tf.summary`` in
  ``write_summaries(loss)``. The host runs this function.
* Set ``save_summary_steps`` in ``NPURunConfig`` if the training step may leave the NPU to write them.

Reported::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        loss = make_loss(features, labels)
        tf.summary.scalar('loss', loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

Untouched::

    import tensorflow as tf

    tf.summary.scalar('loss', loss)
    merged = tf.summary.merge_all()
    writer.add_summary(sess.run(merged), step)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def write_summaries(loss):
        tf.summary.scalar('loss', loss[0])
        return tf.summary.merge_all()

    def model_fn(features, labels, mode):
        loss = make_loss(features, labels)
        return NPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=(write_summaries, [loss]))

Untouched::

    import tensorflow as tf
    from mycompany import summary

    def model_fn(features, labels, mode):
        summary.scalar('loss', loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_first_call
from ...semantics.model import Call
from ..base import Context, Finding

CODE = "NPU205"
CALLS = frozenset("tensorflow.summary." + name for name in "scalar histogram image audio text tensor_summary".split())
_SPECS = frozenset(
    {
        "tensorflow.estimator.EstimatorSpec",
        "tensorflow.estimator.tpu.TPUEstimatorSpec",
        "tensorflow.contrib.tpu.TPUEstimatorSpec",
        "npu_shim.npu_init.NPUEstimatorSpec",
    }
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if isinstance(call.where.scope.node, ast.Module) or not is_first_call(context, call, CALLS, context.names.tree):
        return
    specs = [c for c in context.names.calls if context.called_names.get(c.node) in _SPECS]
    if not specs or any(k.arg == "host_call" for c in specs for k in c.node.keywords):
        return
    yield Finding(
        call.node,
        "NPUEstimator writes no summaries by default. Move this to NPUEstimatorSpec(mode, ..., "
        "host_call=(write_summaries, [loss]))",
    )
