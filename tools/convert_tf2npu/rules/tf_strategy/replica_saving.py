"""Checkpoints that all ranks would write into one folder (with ``-d tf_strategy``).

Replicas of a strategy have one chief that saves. Ranks run the whole script, so that all of them save: into one
folder, one on top of the other, unless each has a folder of its own or only one of them saves. ``NPUEstimator``
sees to that itself; sessions, Keras and the ready-made Estimators do not.

Options: -d tf_strategy

Told::

    import tensorflow as tf

    classifier = tf.estimator.DNNClassifier([32], columns, model_dir=FLAGS.model_dir)

Told::

    import tensorflow as tf

    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(train_op)
        saver.save(sess, FLAGS.checkpoint)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = NPURunConfig(model_dir=FLAGS.model_dir, save_checkpoints_steps=500)
    estimator = NPUEstimator(model_fn, config=config)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    saver = tf.train.Saver()
    if get_rank_id() == 0:
        saver.save(sess, FLAGS.checkpoint)

Untouched::

    import tensorflow as tf

    game.save(slot, FLAGS.checkpoint)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import in_test, trains
from ...analysis.eager import uses_eager
from ...rewrite.call_edits import operand
from ...semantics.model import Call
from ...semantics.signatures import bind
from ...semantics.tf_types import READY_MADE
from ...semantics.value_flow import origins
from ...syntax.expressions import last_part
from ..base import Context, Finding, Result

CODE = "NPU253"
NEEDS = {"distributed": "tf_strategy"}
_FIRST = "if get_rank_id() == 0 else"
_FOLDER = ("model_dir", "config", None)
_MONITORED = ("master", "is_chief", "checkpoint_dir")
_CALLS: dict[str, tuple[str, ...]] = {
    "tensorflow.train.MonitoredTrainingSession": _MONITORED,
    "tensorflow.keras.callbacks.ModelCheckpoint": ("filepath",),
    "tensorflow.contrib.slim.learning.train": ("train_op", "logdir"),
    "tensorflow.train.Supervisor": (),
}
_RANK = re.compile(r"\brank|_rank|RANK_ID")


def check_file(context: Context) -> Iterator[Result]:
    if context.distributed != "tf_strategy" or uses_eager(context):
        return
    for call in context.names.calls:
        told = _told(context, call)
        if told and not in_test(context, call.node) and not _asks_for_rank(context, call):
            yield Finding(call.node, "all ranks save here, one on top of the other; " + told)
            return  # one is enough to think of the others


def _told(context: Context, call: Call) -> str | None:
    """What to write at a call that saves, or makes others save, or None."""
    node, name = call.node, context.resolve(call.node.func, call.where) or ""
    if name in READY_MADE and any(keyword.arg in _FOLDER for keyword in node.keywords):
        return f"give each rank a model_dir of its own, or write save_checkpoints_steps=100 {_FIRST} 0 in its run configuration"
    if name in _CALLS:
        bound = bind(node, _CALLS[name])
        short = last_part(name)
        if short == "ModelCheckpoint":
            return "add this callback under the condition get_rank_id() == 0 only"
        for argument in ("checkpoint_dir", "logdir"):
            if bound.given(argument):
                return f"write {argument}={operand(context.source, bound.args[argument])} {_FIRST} None"
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "save"
        and trains(context)
        and any(
            isinstance(o.node, ast.Call) and o.resolve() == "tensorflow.train.Saver"
            for o in origins(node.func.value, call.where, context.names)
        )
    ):
        return "write if get_rank_id() == 0: {}".format(" ".join(context.source.segment(node).split()))
    return None


def _asks_for_rank(context: Context, call: Call) -> bool:
    """Whether the call, or a condition around it, depends on the rank."""
    tests = [p.test for p in context.names.ancestors(call.node) if isinstance(p, (ast.If, ast.IfExp))]
    return any(_RANK.search(context.source.segment(node)) for node in [call.node] + tests)
