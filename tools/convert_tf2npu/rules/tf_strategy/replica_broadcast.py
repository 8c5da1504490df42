"""Where a loop of session.run has to give all ranks the same variables (with ``-d tf_strategy``).

Ranks initialize their variables one by one, with random numbers of their own, and averaging gradients keeps
the difference for ever. Estimators, monitored sessions and Keras get a hook for that (see NPU306). In a loop of
``session.run`` the values of rank 0 have to be handed round behind the initializer, and behind a checkpoint
that is restored.

Options: -d tf_strategy

Told::

    import tensorflow as tf

    train_op = tf.train.AdamOptimizer().minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train_op)

Told::

    import tensorflow as tf

    slim = tf.contrib.slim
    slim.learning.train(train_op, FLAGS.logdir)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    train_op = optimizer.minimize(loss)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([v.assign(hccl_ops.broadcast([v], 0)[0]) for v in tf.trainable_variables()])
        sess.run(train_op)

Untouched::

    import tensorflow as tf

    def predict(sess):
        sess.run(tf.global_variables_initializer())
        print(sess.run(predictions))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test, trains
from ...analysis.eager import uses_eager
from ...rewrite.npu_imports import name_of_tensorflow
from ...semantics.model import Call
from ...semantics.types import MODEL, SESSION
from ...semantics.value_flow import origins
from ..base import Context, Finding, Result

CODE = "NPU251"
NEEDS = {"distributed": "tf_strategy"}
_INITIALIZERS = frozenset(
    "tensorflow." + name
    for name in """global_variables_initializer variables_initializer
initialize_all_variables initializers.global_variables initializers.variables""".split()
)
_BROADCAST = "npu_shim.npu_init.hccl_ops.broadcast"
_SUPERVISED = frozenset({"managed_session", "prepare_or_wait_for_session"})
_METHODS = _SUPERVISED | {"run", "train_on_batch"}
_WHY = "each rank starts from variables of its own; "


def check_file(context: Context) -> Iterator[Result]:
    text = context.source.text
    if (
        context.distributed != "tf_strategy"
        or not any(w in text for w in (".run(", "session", "learning"))
        or uses_eager(context)
        or _is_there(context)
    ):
        return
    updates = trains(context)
    for call in context.names.calls:
        told = _told(context, call, updates)
        if told and not in_test(context, call.node):
            yield Finding(call.node, _WHY + told)
            return


def _is_there(context: Context) -> bool:
    return _BROADCAST in context.called.values()


def _told(context: Context, call: Call, updates: bool) -> str | None:
    """What to write at a call that starts to train, or None."""
    node, names = call.node, context.names
    tf = name_of_tensorflow(names) or "tf"
    handed_round = f"[v.assign(hccl_ops.broadcast([v], 0)[0]) for v in {tf}.trainable_variables()]"
    if context.resolve(node.func, call.where) == "tensorflow.contrib.slim.learning.train":
        return f"write handed_round = {handed_round} before this, and here init_fn=lambda sess: sess.run(handed_round)"
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in _METHODS:
        return None
    owner = context.types.of(function.value, call.where)
    if owner == MODEL and function.attr == "train_on_batch":
        return f"write before the loop {tf}.keras.backend.get_session().run({handed_round})"
    if function.attr in _SUPERVISED and updates and owner is not None:
        return f"in this session write sess.graph._unsafe_unfinalize() and sess.run({handed_round}) before the loop"
    if (
        updates
        and function.attr == "run"
        and owner in (None, SESSION)
        and node.args
        and any(
            isinstance(o.node, ast.Call) and o.resolve() in _INITIALIZERS
            for value in _members(node.args[0])
            for o in origins(value, call.where, names)
        )
    ):
        return f"behind this, and behind what is restored, write {context.source.segment(function.value)}.run({handed_round})"
    return None


def _members(node: ast.expr) -> list:
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else [node]
