"""Give Keras a session for the NPU and close it at the end.

Keras creates its session itself. A script that trains a Keras model in graph mode must create a session for the NPU
first. The rule creates it in the function from which the training starts, after settings such as seeds, and closes it
at the end of that function. Tests stay unchanged. Programs of TensorFlow 2, and those that may be, open the device
instead (NPU121).

The rule reports a training call in these cases:

* The object may be something else than a Keras model, which facts of ``npu-shim observe`` settle, or no single function
  starts the training. Write
  ``npu_keras_sess = set_keras_session_npu_config()`` before the model is created and
  ``close_session(npu_keras_sess)`` at the end.
* The model trains eagerly. Keras models train in graph mode on the NPU. Call ``tf.compat.v1.disable_v2_behavior()``
  at the start of the script and create the session.
* Programs of TensorFlow 1 and of TensorFlow 2 import the module. Those of TensorFlow 1 create the session.
* The function returns a value, so the session stays open until the process ends. Call
  ``close_session(npu_keras_sess)`` after its last use.

Before::

    import tensorflow.compat.v1 as tf

    def main(_):
        \"\"\"Trains.\"\"\"
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
        model.fit(images, labels)

    if __name__ == '__main__':
        tf.disable_v2_behavior()
        tf.app.run(main)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import close_session, set_keras_session_npu_config

    def main(_):
        \"\"\"Trains.\"\"\"
        npu_keras_sess = set_keras_session_npu_config()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
        model.fit(images, labels)
        close_session(npu_keras_sess)

    if __name__ == '__main__':
        tf.disable_v2_behavior()
        tf.app.run(main)

Before::

    import tensorflow.compat.v1 as tf

    if __name__ == '__main__':
        if tf.__version__ >= '2.0.0':
            tf.disable_v2_behavior()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.fit(images, labels)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import close_session, set_keras_session_npu_config

    if __name__ == '__main__':
        if tf.__version__ >= '2.0.0':
            tf.disable_v2_behavior()
        npu_keras_sess = set_keras_session_npu_config()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.fit(images, labels)
        close_session(npu_keras_sess)

Untouched::

    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    model = MODELS[FLAGS.model]()
    model.compile(loss='mse', optimizer=tf.keras.optimizers.Adam())
    model.fit(images, labels)

Untouched::

    import re
    from statsmodels.api import OLS

    pattern = re.compile('a')
    OLS(y, x).fit()

Untouched::

    import tensorflow.compat.v1 as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    output = model(images)

Untouched::

    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.enable_eager_execution()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(images, labels)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import only_serves_tests
from ...analysis.eager_training import uses_eager
from ...analysis.entry_points import is_started
from ...analysis.keras_training import (
    body_starting_training,
    first_possible_training,
    first_training,
    sets_session,
)
from ...analysis.opening import is_graph_mode_undecided, must_open_for_both_versions
from ...analysis.tensorflow_evidence import ENABLING
from ...analysis.tensorflow_version import Version, is_tf2_program, version_verdict
from ...facts.kinds import MODEL
from ...rewrite.insertion import edit_adding_before, edits_adding_at_end, first_statement_after_preamble
from ...semantics.tf_types import TRAINING_METHODS
from ...syntax.source import Edit
from ..base import Change, Context, Finding, Question

CODE = "NPU105"
ON_OBJECTS = frozenset("." + word for word in TRAINING_METHODS)
_OPEN = "npu_keras_sess = set_keras_session_npu_config()"
_CLOSE = "close_session(npu_keras_sess)"


def check_file(context: Context) -> Iterator[Change | Finding]:
    if not any(word in context.source.text for word in TRAINING_METHODS) or only_serves_tests(context):
        return
    trained = first_training(context)
    possible = None if trained or sets_session(context) else first_possible_training(context)
    if trained is None and possible is None:
        return  # without a verdict, which takes longer
    if version_verdict(context).opens or must_open_for_both_versions(context):
        return  # the device gives Keras a session in graph mode
    opens = is_tf2_program(context) or is_graph_mode_undecided(context)  # NPU121
    if opens:
        return
    seen = None
    if trained is None:
        assert possible is not None
        model = possible.node.func.value  # type: ignore[attr-defined]
        seen = context.observed_at(CODE, MODEL, model)
        if seen is not None and seen.only("is") == "other":
            return
        if seen is None or seen.only("is") != "keras" or seen.only("eager") is not False:
            yield Finding(
                possible.node,
                "this may train a Keras model. If it does, write {0} before the model and {1} at the end",
                _OPEN,
                _CLOSE,
                asks=(Question(MODEL, model),),
            )
            return
        trained = possible
    if not ENABLING.isdisjoint(context.called_names.values()):
        return  # NPU210
    if version_verdict(context).version == Version.BOTH and not is_started(context):
        yield Finding(
            trained.node,
            "programs of TensorFlow 1 and 2 train this Keras model. In those of 1, write {0} before the model",
            _OPEN,
        )
        return
    if uses_eager(context):
        yield Finding(
            trained.node,
            "this Keras model trains eagerly. Call tf.compat.v1.disable_v2_behavior() at the start, then {0}",
            _OPEN,
        )
        return
    body = body_starting_training(context, trained)
    edits = _edits_to_open_and_close(context, body) if body else None
    if edits is None:
        yield Finding(
            trained.node,
            "Keras needs a session for the NPU. Write {0} before the model and {1} at the end",
            _OPEN,
            _CLOSE,
        )
        return
    uses = ("set_keras_session_npu_config",) + (("close_session",) if len(edits) > 1 else ())
    runs = seen.runs if seen is not None else None
    yield Change(trained.node, "Keras session for the NPU added", tuple(edits), uses, runs)
    if len(edits) == 1:
        yield Finding(
            trained.node, "the Keras session stays open until the process ends. Call {0} after its last use", _CLOSE
        )


def _edits_to_open_and_close(context: Context, body: ast.AST) -> list[Edit] | None:
    first = first_statement_after_preamble(context, body)
    return (
        [edit_adding_before(context, first, _OPEN), *edits_adding_at_end(context, body, _CLOSE)]
        if first is not None
        else None
    )
