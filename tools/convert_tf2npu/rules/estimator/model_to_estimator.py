"""Replace model_to_estimator with model_to_npu_estimator.

``keras_to_npu.model_to_npu_estimator`` takes the arguments of ``tf.keras.estimator.model_to_estimator`` and returns
an NPUEstimator.

The rule reports a call with arguments that ``model_to_npu_estimator`` does not accept. Remove these arguments and
write ``keras_to_npu.model_to_npu_estimator(keras_model, config=NPURunConfig(...))``.

Before::

    import tensorflow as tf

    config = tf.estimator.RunConfig(save_checkpoints_steps=100)
    estimator = tf.keras.estimator.model_to_estimator(keras_model=model, config=config)
    other = tf.keras.estimator.model_to_estimator(model)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = NPURunConfig(save_checkpoints_steps=100)
    estimator = keras_to_npu.model_to_npu_estimator(keras_model=model, config=config)
    other = keras_to_npu.model_to_npu_estimator(model)

Before::

    from tensorflow.keras.estimator import model_to_estimator

    def make(model, config):
        return model_to_estimator(model, None, None, '/tmp/model', config)

After::

    from tensorflow.keras.estimator import model_to_estimator
    from npu_shim.npu_init import *

    def make(model, config):
        return keras_to_npu.model_to_npu_estimator(model, None, None, '/tmp/model', config=npu_run_config_init(run_config=config))

Untouched::

    import tensorflow as tf

    estimator = tf.keras.estimator.model_to_estimator(model, metric_names_map=names)

Untouched::

    import tensorflow as tf
    from mycompany import model_to_estimator

    estimator = model_to_estimator(model)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.run_configs import type_after_conversion
from ...rewrite.call_edits import edit_to_rename, edits_to_wrap, name_argument
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...syntax.source import Edit
from ..base import Change, Context, Finding

CODE = "NPU117"
CALLS = frozenset({"tensorflow.keras.estimator.model_to_estimator"})
_SIGNATURE = ("keras_model", "keras_model_path", "custom_objects", "model_dir", "config", "checkpoint_format")


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    source = context.source
    bound = bind_arguments(call.node, _SIGNATURE)
    if bound.hidden or bound.unknown or "checkpoint_format" in bound.positional:
        yield Finding(
            call.node,
            "model_to_npu_estimator does not accept these arguments. Write "
            "keras_to_npu.model_to_npu_estimator(keras_model, config=NPURunConfig(...))",
        )
        return
    edits: list[Edit] = [edit_to_rename(source, call.node.func, "keras_to_npu.model_to_npu_estimator")]
    uses = ["keras_to_npu"]
    config = bound.args.get("config")
    if config is not None and bound.is_given("config"):
        if "config" in bound.positional:  # the vendor's function has checkpoint_format at this position
            edits.append(name_argument(source, call.node, config, "config"))
        if type_after_conversion(context, config, call.where) is None:
            edits += edits_to_wrap(source, config, "npu_run_config_init(run_config=", ")")
            uses.append("npu_run_config_init")
    yield Change(call.node, "model_to_estimator replaced with model_to_npu_estimator", tuple(edits), tuple(uses))
