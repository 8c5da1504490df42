"""Prints without effect.

In a graph ``tf.print`` creates an operation. An operation that nothing depends on never runs, on any device. Make it
a control dependency of an operation that runs. In ``tf.function`` and in eager execution it runs without that.

In a session the NPU puts what it prints into the channel ``_npu_log``, and nothing reads it: the script prints
nothing. ``NPUEstimator`` has a thread that reads. A monitored session gets it with the hook
``npu_shim.estimator.npu.npu_hook.NPULogOutfeedSessionHook(sys.stderr)``; another session needs a thread of the
script, in which a session of its own runs ``tf.print(npu_ops.outfeed_dequeue_op(channel_name='_npu_log',
output_types=[tf.string], output_shapes=[()]))`` once for each print. The rule reports the first print of a file that
has sessions and no Estimator.

Reported::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        tf.print('loss', loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss)

Reported::

    import tensorflow as tf

    loss = tf.Print(loss, [loss])
    with tf.Session() as sess:
        sess.run(tf.train.AdamOptimizer().minimize(loss))

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    loss = tf.Print(loss, [loss])
    hooks = [npu_shim.estimator.npu.npu_hook.NPULogOutfeedSessionHook(sys.stderr)]
    with tf.train.MonitoredTrainingSession(hooks=hooks, config=npu_config_proto()) as sess:
        sess.run(tf.train.AdamOptimizer().minimize(loss))

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

from ...analysis.device_placement import is_first_call, runs_on_npu
from ...semantics.model import Call
from ..base import Context, Finding

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

_SESSION = re.compile(r"Session\(")
# An Estimator reads the prints; so does a hook, or a thread of the script.
_READS = re.compile(r"Estimator\w*\(|EstimatorSpec\(|LogOutfeedSessionHook|outfeed_dequeue_op")


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    text = context.source.text
    if not _GRAPH.search(text) or _EAGER.search(text) or not runs_on_npu(context, call.node):
        return
    if not isinstance(context.names.parents.get(call.node), ast.Expr):
        if (
            _SESSION.search(text)
            and not _READS.search(text)
            and is_first_call(context, call, CALLS, context.names.tree)
        ):
            yield Finding(
                call.node,
                "a session on the NPU does not show its prints. "
                "Read the channel _npu_log in a hook or a thread, as NPU225 explains",
            )
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
