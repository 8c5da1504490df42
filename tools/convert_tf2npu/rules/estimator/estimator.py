"""Make Estimators NPU Estimators.

``NPUEstimator`` is a ``tf.estimator.Estimator`` whose session carries the options of its
``NPURunConfig``. Where the run configuration only arrives as a value that this file does not make,
the Estimator keeps its class and the value is prepared by ``npu_run_config_init``. What a model_fn
returns, an ``EstimatorSpec``, is right for an NPUEstimator as it is.

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

from ...analysis.run_configs import becomes
from ...rewrite.call_edits import add_argument, name_argument, rename, wrap
from ...semantics.model import Call
from ...semantics.signatures import ESTIMATOR, bind
from ...semantics.types import NPU_RUN_CONFIG, PREPARED
from ...syntax.source import Edit
from ..base import Change, Context, Finding, Result

CODE = "NPU103"
CALLS = frozenset({"tensorflow.estimator.Estimator"})


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    source = context.source
    bound = bind(call.node, ESTIMATOR)
    if bound.hidden or bound.unknown:
        yield Finding(
            call.node,
            "the arguments of Estimator are not all to be seen; write NPUEstimator(..., config=NPURunConfig(...))",
        )
        return
    config = bound.args.get("config")
    edits: list[Edit] = []
    uses = ["NPUEstimator"]
    if config is not None and bound.given("config"):
        kind = becomes(context, config, call.where)
        if kind == PREPARED:
            return
        if kind != NPU_RUN_CONFIG:
            yield Change(
                call.node,
                "Estimator gets its run configuration prepared for the NPU",
                wrap(source, config, "npu_run_config_init(run_config=", ")"),
                ("npu_run_config_init",),
            )
            return
    elif config is not None:
        edits.append(rename(source, config, "NPURunConfig()"))
        uses.append("NPURunConfig")
    else:
        added = add_argument(source, call.node, "config=NPURunConfig()")
        if added is None:
            return
        edits.append(added)
        uses.append("NPURunConfig")
    edits.append(rename(source, call.node.func, "NPUEstimator"))
    if "warm_start_from" in bound.positional:  # NPUEstimator has job_start_file in its place
        edits.append(name_argument(source, call.node, bound.args["warm_start_from"], "warm_start_from"))
    yield Change(call.node, "Estimator becomes NPUEstimator", tuple(edits), tuple(uses))
