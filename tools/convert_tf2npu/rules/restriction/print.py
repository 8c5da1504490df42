"""tf.print without effect.

In a graph ``tf.print`` creates an operation. An operation that nothing depends on never runs, on any device. Make it
a control dependency of an operation that runs. In ``tf.function`` and in eager execution it runs without that.

Reported::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        tf.print('loss', loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss)

Untouched::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        with tf.control_dependencies([tf.print('loss', loss)]):
            loss = tf.identity(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        tf.print(x)
        return x * 2
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...semantics.model import Call
from ..base import Context, Finding, Result

CODE = "NPU225"
CALLS = frozenset({"tensorflow.print", "tensorflow.Print"})
_GRAPH = re.compile(
    r"\.(Session|placeholder|get_variable|layers\.dense|EstimatorSpec|TPUEstimatorSpec|"
    r"MonitoredTrainingSession|disable_eager_execution|disable_v2_behavior)\("
)
_EAGER = re.compile(
    r"enable_eager_execution|enable_v2_behavior|tf\.function|def_function|"
    r"to_graph|GradientTape|autograph"
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    text = context.source.text
    if (
        not isinstance(context.names.parents.get(call.node), ast.Expr)
        or not _GRAPH.search(text)
        or _EAGER.search(text)
        or not runs_on_npu(context, call.node)
    ):
        return
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, ast.FunctionDef) and (parent.decorator_list or parent.name == "call"):
            return
    advice = (
        "Write with tf.control_dependencies([tf.print(...)]): around an operation that runs"
        if name == "tensorflow.print"
        else "Write x = tf.Print(x, ...) and use this x"
    )
    yield Finding(call.node, "no operation depends on this print, so it never runs. {0}", advice)
