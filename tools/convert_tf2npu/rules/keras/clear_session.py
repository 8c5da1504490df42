"""Replace clear_session of Keras with npu_clear_session.

``clear_session`` of Keras deletes the session for the NPU. ``npu_clear_session`` deletes it and creates a new one.

Before::

    import tensorflow.compat.v1 as tf
    from tensorflow.keras import backend as K

    tf.disable_v2_behavior()
    for size in sizes:
        K.clear_session()
        model = tf.keras.Sequential([tf.keras.layers.Dense(size)])
        model.fit(images, labels)

After::

    import tensorflow.compat.v1 as tf
    from tensorflow.keras import backend as K

    tf.disable_v2_behavior()
    from npu_shim.npu_init import close_session, npu_clear_session, set_keras_session_npu_config
    npu_keras_sess = set_keras_session_npu_config()
    for size in sizes:
        npu_clear_session()
        model = tf.keras.Sequential([tf.keras.layers.Dense(size)])
        model.fit(images, labels)
    close_session(npu_keras_sess)

Untouched::

    import tensorflow as tf

    class Cache:
        def stop(self):
            self.backend.clear_session()

Untouched::

    import tensorflow as tf

    def gradients(model, x):
        tf.keras.backend.clear_session()
        with tf.GradientTape() as tape:
            loss = model(x)
        return tape.gradient(loss, model.trainable_variables)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.eager_training import uses_eager
from ...analysis.keras_training import first_training
from ...analysis.opening import is_graph_mode_undecided
from ...analysis.tensorflow_version import is_tf2_program
from ...rewrite.call_edits import edit_to_rename
from ...semantics.model import Call
from ..base import Change, Context

CODE = "NPU115"
CALLS = frozenset({"tensorflow.keras.backend.clear_session"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change]:
    if (
        call.node.args
        or call.node.keywords
        or uses_eager(context)
        or is_tf2_program(context)
        or is_graph_mode_undecided(context)
        or first_training(context) is None
    ):
        return
    yield Change(
        call.node,
        "clear_session replaced with npu_clear_session",
        (edit_to_rename(context.source, call.node.func, "npu_clear_session"),),
        ("npu_clear_session",),
    )
