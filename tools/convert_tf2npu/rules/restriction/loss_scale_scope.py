"""Loss scale manager created inside control dependencies.

A dynamic loss scale manager has variables. If it is created under ``tf.control_dependencies``, their initial values
depend on operations of the training step. The graph then has a cycle, and the NPU rejects it.

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.control_dependencies(update_ops):
        manager = ExponentialUpdateLossScaleManager(2 ** 32, 1000, 2, 0.5)
        optimizer = NPULossScaleOptimizer(optimizer, manager)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    manager = ExponentialUpdateLossScaleManager(2 ** 32, 1000, 2, 0.5)
    optimizer = NPULossScaleOptimizer(optimizer, manager)
    with tf.control_dependencies(update_ops):
        train_op = optimizer.minimize(loss)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...semantics.model import Call
from ..base import Context, Finding

CODE = "NPU242"
CALLS = frozenset(
    {
        "npu_shim.npu_init.ExponentialUpdateLossScaleManager",
        "tensorflow.contrib.mixed_precision.ExponentialUpdateLossScaleManager",
        "tensorflow.train.experimental.DynamicLossScale",
    }
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, (ast.FunctionDef, ast.Lambda)):
            return
        if isinstance(parent, ast.With) and any(
            isinstance(i.context_expr, ast.Call)
            and context.resolve(i.context_expr.func, context.names.places[parent]) == "tensorflow.control_dependencies"
            for i in parent.items
        ):
            yield Finding(
                call.node,
                "the loss scale variables depend on these control dependencies. "
                "Create the manager before the with tf.control_dependencies(...) statement",
            )
            return
