"""Replace Estimator with NPUEstimator.

``NPUEstimator`` is a ``tf.estimator.Estimator`` whose session uses the options of its ``NPURunConfig``. If this file
does not create the run configuration, the Estimator keeps its class and ``npu_run_config_init`` prepares the
configuration. An ``EstimatorSpec`` that a model_fn returns needs no change.

The rule reports an Estimator with arguments behind ``*`` or ``**``. Write ``NPUEstimator`` and pass it an
``NPURunConfig``.

Before::

    import tensorflow as tf

    config = tf.estimator.RunConfig(save_checkpoints_steps=500)
    estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir, config, params)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = NPURunConfig(save_checkpoints_steps=500)
    estimator = NPUEstimator(model_fn, FLAGS.model_dir, config, params)

Before::

    import tensorflow as tf

    estimator = tf.estimator.Estimator(model_fn=model_fn)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    estimator = NPUEstimator(model_fn=model_fn, config=NPURunConfig())

Before::

    import tensorflow as tf

    def make(config):
        return tf.estimator.Estimator(model_fn, config=config)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def make(config):
        return tf.estimator.Estimator(model_fn, config=npu_run_config_init(run_config=config))

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def make(config):
        return tf.estimator.Estimator(model_fn, config=npu_run_config_init(run_config=config))

Before::

    import tensorflow as tf

    def make(strategy):
        config = tf.estimator.RunConfig(train_distribute=strategy)
        config = config.replace(save_checkpoints_steps=100)
        return tf.estimator.Estimator(model_fn, config=config)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def make(strategy):
        config = npu_run_config_init(run_config=tf.estimator.RunConfig(train_distribute=strategy, save_summary_steps=0))
        config = config.replace(save_checkpoints_steps=100)
        return tf.estimator.Estimator(model_fn, config=config)

Untouched::

    import tensorflow as tf

    def model_fn(features, labels, mode):
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)

Untouched::

    import tensorflow as tf
    from sklearn.base import BaseEstimator as Estimator

    estimator = Estimator(model_fn)

Untouched::

    import tensorflow as tf

    estimator = tf.estimator.Estimator(*arguments)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.run_configs import type_after_conversion
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap, name_argument
from ...semantics.model import Call
from ...semantics.signatures import ESTIMATOR, bind_arguments
from ...semantics.tf_types import Type
from ...syntax.source import Edit
from ..base import Change, Context, Finding

CODE = "NPU103"
DELIBERATE = "leaves out the partial training batches of an input_fn"
CALLS = frozenset({"tensorflow.estimator.Estimator"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    source = context.source
    bound = bind_arguments(call.node, ESTIMATOR)
    if bound.hidden or bound.unknown:
        yield Finding(
            call.node,
            "some arguments of Estimator are not visible. Write NPUEstimator(..., config=NPURunConfig(...))",
        )
        return
    config = bound.args.get("config")
    edits: list[Edit] = []
    uses = ["NPUEstimator"]
    if config is not None and bound.is_given("config"):
        kind = type_after_conversion(context, config, call.where)
        if kind == Type.PREPARED_RUN_CONFIG:
            return
        if kind != Type.NPU_RUN_CONFIG:
            yield Change(
                call.node,
                "run configuration of Estimator prepared for the NPU",
                edits_to_wrap(source, config, "npu_run_config_init(run_config=", ")"),
                ("npu_run_config_init",),
            )
            return
    elif config is not None:
        edits.append(edit_to_rename(source, config, "NPURunConfig()"))
        uses.append("NPURunConfig")
    else:
        added = edit_to_add_argument(source, call.node, "config=NPURunConfig()")
        if added is None:
            return
        edits.append(added)
        uses.append("NPURunConfig")
    edits.append(edit_to_rename(source, call.node.func, "NPUEstimator"))
    if "warm_start_from" in bound.positional:  # NPUEstimator has job_start_file at this position
        edits.append(name_argument(source, call.node, bound.args["warm_start_from"], "warm_start_from"))
    yield Change(call.node, "Estimator replaced with NPUEstimator", tuple(edits), tuple(uses))
