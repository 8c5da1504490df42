"""Checkpoints that all ranks write to the same folder (with ``-d tf_strategy``).

The replicas of a strategy have one chief that saves. Ranks run the whole script, so all of them save to the same
folder and overwrite each other. ``NPUEstimator`` prevents this. For sessions, Keras and canned Estimators, save on
rank 0 only or give each rank a folder of its own:

* Canned Estimators and ``TPUEstimator``: pass ``save_checkpoints_steps=100 if get_rank_id() == 0 else 0`` to the run configuration.
* Other calls: pass the folder on rank 0 and None on the other ranks, or put the call under
  ``if get_rank_id() == 0:``.

The rule reports one finding for each file. An Estimator that a file only exports saves no checkpoints.

Options: -d tf_strategy

Reported::

    import tensorflow as tf

    classifier = tf.estimator.DNNClassifier([32], columns, model_dir=FLAGS.model_dir)

Reported::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_run_config_init

    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=npu_run_config_init(run_config=run_config), use_tpu=False, eval_on_tpu=False,
        export_to_tpu=False)
    estimator.train(input_fn)

Reported::

    import tensorflow as tf

    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(train_op)
        saver.save(sess, FLAGS.ranking_model)

Reported::

    import tensorflow as tf

    images = tf.placeholder(tf.float32, [32, 784])
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(images, labels)
    model.save_weights('weights.h5')

Untouched::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_run_config_init

    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=npu_run_config_init(run_config=run_config), use_tpu=False, eval_on_tpu=False,
        export_to_tpu=False)
    estimator.export_saved_model(FLAGS.export_dir, serving_input_fn)

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

from ...analysis.device_placement import is_in_test, trains_with_imports
from ...analysis.parallel_training import may_be_eager_program
from ...rewrite.call_edits import operand_text
from ...semantics.model import Call, Where
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import READY_MADE, TPU_ESTIMATORS, Type
from ...semantics.value_flow import origins
from ...syntax.expressions import last_part
from ...syntax.source import one_line
from ...syntax.words import has_words
from ..base import Context, Finding, Message

CODE = "NPU253"
NEEDS = {"distributed": "tf_strategy"}
_FIRST = "if get_rank_id() == 0 else"
_ESTIMATORS = READY_MADE | TPU_ESTIMATORS
_FOLDER = ("model_dir", "config", None)
_MONITORED = ("master", "is_chief", "checkpoint_dir")
_CALLS: dict[str, tuple[str, ...]] = {
    "tensorflow.train.MonitoredTrainingSession": _MONITORED,
    "tensorflow.keras.callbacks.ModelCheckpoint": ("filepath",),
    "tensorflow.contrib.slim.learning.train": ("train_op", "logdir"),
    "tensorflow.train.Supervisor": (),
}
_KERAS = frozenset({"tensorflow.keras.models.save_model"})
_RANK = re.compile(r"(?:\b|_)rank(?!ing|er|ed)|RANK_ID")


def check_file(context: Context) -> Iterator[Finding]:
    if may_be_eager_program(context):
        return
    for call in context.names.calls:
        fix = _fix_of_saving(context, call)
        if fix and not is_in_test(context, call.node) and not _depends_on_rank(context, call):
            yield Finding(call.node, "all ranks write to the same checkpoint folder. {0}", fix)
            return  # one finding for each file


def _fix_of_saving(context: Context, call: Call) -> str | None:
    """Return the fix for a call that saves checkpoints, or None for other calls."""
    node, name = call.node, context.resolve(call.node.func, call.where) or ""
    if name in _ESTIMATORS and any(keyword.arg in _FOLDER for keyword in node.keywords) and not _only_exports(context):
        return Message("In its run configuration pass save_checkpoints_steps=100 {0} 0", _FIRST)
    if name in _CALLS:
        bound = bind_arguments(node, _CALLS[name])
        short = last_part(name)
        if short == "ModelCheckpoint":
            return "Add this callback only if get_rank_id() == 0"
        for argument in ("checkpoint_dir", "logdir"):
            if bound.is_given(argument):
                return Message(
                    "Pass {0}={1} {2} None", argument, operand_text(context.source, bound.args[argument]), _FIRST
                )
    if _saves_session(context, call) or _saves_model(context, call, name):
        return Message("Write if get_rank_id() == 0: {0}", one_line(context.source.segment(node)))
    return None


def _only_exports(context: Context) -> bool:
    text = context.source.text
    return has_words(text, (".export_saved",)) and not has_words(text, (".train(", "train_and_evaluate", "TrainSpec"))


def _saves_session(context: Context, call: Call) -> bool:
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "save"
        and _is_saver(context, function.value, call.where)
        and trains_with_imports(context)
    )


def _saves_model(context: Context, call: Call, name: str) -> bool:
    """Return True if a call saves a Keras model, in a file that trains one."""
    function = call.node.func
    saves = name in _KERAS or (
        isinstance(function, ast.Attribute)
        and function.attr in ("save", "save_weights")
        and context.types.type_of(function.value, call.where) == Type.MODEL
    )
    return saves and has_words(context.source.text, (".fit(", ".fit_generator(", ".train_on_batch("))


def _is_saver(context: Context, node: ast.expr, where: Where) -> bool:
    """Return True if an object is a Saver, or has its name and comes from code that is not known."""
    calls = [o for o in origins(node, where, context.names) if isinstance(o.node, ast.Call)]
    if calls:
        return any(o.resolve() == "tensorflow.train.Saver" for o in calls)
    return isinstance(node, ast.Attribute) and "saver" in node.attr.lower()


def _depends_on_rank(context: Context, call: Call) -> bool:
    """Return True if the call, or a condition around it, depends on the rank."""
    tests = [p.test for p in context.names.ancestors(call.node) if isinstance(p, (ast.If, ast.IfExp))]
    return any(_RANK.search(context.source.segment(node)) for node in [call.node] + tests)
