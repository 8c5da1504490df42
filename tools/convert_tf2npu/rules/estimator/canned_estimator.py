"""Prepare the run configuration of canned Estimators for the NPU.

Canned Estimators keep their classes. ``npu_run_config_init`` adds the NPU session configuration to their run
configuration.

The rule reports a canned Estimator if it cannot see which argument is the run configuration. Pass
``config=npu_run_config_init(run_config=...)`` by keyword.

Before::

    import tensorflow as tf

    model = tf.estimator.DNNClassifier([32, 16], columns, config=run_config)
    other = tf.estimator.LinearRegressor(feature_columns=columns)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    model = tf.estimator.DNNClassifier([32, 16], columns, config=npu_run_config_init(run_config=run_config))
    other = tf.estimator.LinearRegressor(feature_columns=columns, config=npu_run_config_init())

Before::

    import tensorflow as tf
    from tensorflow.contrib import learn

    model = learn.Estimator(model_fn, FLAGS.model_dir, learn.RunConfig(save_summary_steps=0))
    means = tf.contrib.factorization.KMeansClustering(num_clusters=5)

After::

    import tensorflow as tf
    from tensorflow.contrib import learn
    from npu_shim.npu_init import *

    model = learn.Estimator(model_fn, FLAGS.model_dir, npu_run_config_init(run_config=learn.RunConfig(save_summary_steps=0)))
    means = tf.contrib.factorization.KMeansClustering(num_clusters=5, config=npu_run_config_init())

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    model = tf.estimator.DNNClassifier([32], columns, config=npu_run_config_init())

Untouched::

    from sklearn.neural_network import MLPClassifier as DNNClassifier
    import tensorflow as tf

    model = DNNClassifier([32], solver='sgd')
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.run_configs import type_after_conversion
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap
from ...semantics.model import Call
from ...semantics.tf_types import READY_MADE, Type
from ...syntax.expressions import is_none, last_part
from ..base import Change, Context, Finding, Message

CODE = "NPU104"
CALLS = READY_MADE
# Few signatures have config among the first three parameters, and scripts pass no more by position.
_BY_PLACE = 3
_PLACES = {"tensorflow.contrib.learn.Estimator": 2, "tensorflow.contrib.learn.BaseEstimator": 1}


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    short = last_part(name)
    keywords = {k.arg: k.value for k in call.node.keywords}
    if None in keywords or len(call.node.args) > _BY_PLACE:
        yield Finding(
            call.node,
            "the run configuration of {0} is not visible. Pass config=npu_run_config_init(run_config=...)",
            short,
        )
        return
    message = Message("run configuration of {0} prepared for the NPU", short)
    uses = ("npu_run_config_init",)
    place = _PLACES.get(name, _BY_PLACE)
    config = keywords.get("config") or (call.node.args[place] if len(call.node.args) > place else None)
    if config is not None and not is_none(config):
        if type_after_conversion(context, config, call.where) != Type.PREPARED_RUN_CONFIG:
            yield Change(
                call.node, message, edits_to_wrap(context.source, config, "npu_run_config_init(run_config=", ")"), uses
            )
        return
    edit = (
        edit_to_rename(context.source, config, "npu_run_config_init()")
        if config is not None
        else edit_to_add_argument(context.source, call.node, "config=npu_run_config_init()")
    )
    if edit:
        yield Change(call.node, message, (edit,), uses)
