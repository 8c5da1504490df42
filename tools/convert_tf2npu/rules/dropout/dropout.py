"""Replace tf.nn.dropout with the NPU operator.

``npu_ops.dropout`` takes the keep probability. If the script gives a drop rate, the rule writes one minus the rate.
In TensorFlow 1 the second positional argument is the keep probability, in TensorFlow 2 the rate. Eager programs keep
``tf.nn.dropout``: ``npu.open().as_default()`` (NPU121) replaces it where the NPU has its own.

The rule reports these calls:

* The file shows neither version. Pass the second argument by keyword. With facts of ``npu-shim observe`` the rule
  takes the version that ran.
* The call has a ``noise_shape``. The NPU operator draws one number for each element and has no ``noise_shape``. It is
  faster, so use it without ``noise_shape`` if your model allows it.
* The arguments are hidden behind ``*`` or ``**``, or the rate is positional. Write
  ``npu_ops.dropout(x, keep_prob=...)``.

Before::

    import tensorflow.compat.v1 as tf

    net = tf.nn.dropout(net, keep_prob)
    net = tf.nn.dropout(net, keep_prob=0.5, seed=7)
    net = tf.nn.dropout(net, rate=0.1)
    net = tf.nn.dropout(net, rate=1 - FLAGS.keep)
    net = tf.nn.dropout(net, rate=high if training else low)
    net = tf.keras.backend.dropout(net, level=0.3)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_ops

    net = npu_ops.dropout(net, keep_prob)
    net = npu_ops.dropout(net, keep_prob=0.5, seed=7)
    net = npu_ops.dropout(net, keep_prob=0.9)
    net = npu_ops.dropout(net, keep_prob=FLAGS.keep)
    net = npu_ops.dropout(net, keep_prob=1 - (high if training else low))
    net = npu_ops.dropout(net, keep_prob=0.7)

Before::

    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    net = tf.nn.dropout(net, 0.25)

After::

    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    from npu_shim.npu_init import *
    net = npu_ops.dropout(net, 0.75)

Untouched::

    import tensorflow as tf

    @tf.function
    def layer(x):
        return tf.nn.dropout(x, 0.25)

Before::

    import tensorflow as tf

    class Block(tf.layers.Layer):
        def call(self, x):
            return tf.nn.dropout(x, 0.8)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    class Block(tf.layers.Layer):
        def call(self, x):
            return npu_ops.dropout(x, 0.8)

Untouched::

    import tensorflow.compat.v1 as tf

    net = tf.nn.dropout(net, 0.9, noise_shape=[1, 1, depth])

Untouched::

    import tensorflow as tf

    class Layer:
        def __call__(self, x):
            return self.dropout(x, 0.5)

Untouched::

    import tensorflow as tf

    def layer(x):
        return tf.nn.dropout(x, 0.5)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.tensorflow_version import is_tf2_program
from ...facts.kinds import FUNCTION
from ...rewrite.call_edits import edit_to_rename, edits_to_keep_probability, rename_keyword
from ...semantics.model import Call
from ...semantics.module_index import Names
from ...semantics.signatures import DROPOUT_V1, DROPOUT_V2, bind_arguments
from ...syntax.source import Edit
from ...tf_api.canonical_names import is_known_tf2_spelling, is_tf1_name
from ..base import Change, Context, Finding, Question

CODE = "NPU106"
CALLS = frozenset({"tensorflow.nn.dropout", "tensorflow.keras.backend.dropout"})
_KERAS_LEVEL = ("x", "level", "noise_shape", "seed")
# Functions and modules that only TensorFlow 1 has below the plain name tensorflow.
_ONLY_IN_1 = frozenset(
    "tensorflow." + name
    for name in """
Session InteractiveSession ConfigProto placeholder placeholder_with_default get_variable variable_scope
get_variable_scope global_variables global_variables_initializer local_variables_initializer
initialize_all_variables trainable_variables get_default_graph get_default_session reset_default_graph
get_collection add_to_collection set_random_seed truncated_normal truncated_normal_initializer random_normal
random_normal_initializer random_uniform random_crop glorot_uniform_initializer assign assign_add to_float
to_int32 to_int64 log div py_func make_template Print nn.xw_plus_b nn.dynamic_rnn nn.bidirectional_dynamic_rnn
nn.static_rnn summary.FileWriter summary.merge_all train.Saver train.AdamOptimizer train.AdagradOptimizer
train.MomentumOptimizer train.RMSPropOptimizer train.GradientDescentOptimizer train.Supervisor
train.get_or_create_global_step train.get_global_step train.exponential_decay
train.MonitoredTrainingSession losses.softmax_cross_entropy losses.sparse_softmax_cross_entropy
losses.mean_squared_error losses.get_total_loss""".split()
)
_MODULES_OF_1 = tuple(
    f"tensorflow.{name}." for name in ("layers", "app", "flags", "gfile", "logging", "python_io", "nn.rnn_cell")
)
# Names that show the version only until the tool replaces them.
_REPLACED_OF_1 = ("tensorflow.contrib.", "tensorflow.layers.dropout")
_HOROVOD_OF_1 = "horovod.broadcast_global_variables"
_REPLACED = CALLS | {
    "tensorflow.layers.dropout",
    "tensorflow.estimator.Estimator",
    "tensorflow.estimator.RunConfig",
    "tensorflow.keras.estimator.model_to_estimator",
}
_COMPAT = "tensorflow.compat.v1"
_ONLY_IN_2 = frozenset({"tensorflow.function", "tensorflow.GradientTape", "tensorflow.keras.optimizers.Adam"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if is_tf2_program(context):
        return  # npu.open().as_default() replaces it
    source = context.source
    node = call.node
    spelled = context.names.spelled_name(node.func, call.where) or ""
    keras = name == "tensorflow.keras.backend.dropout"
    version = 2 if keras else 1 if is_tf1_name(spelled) else context.once(_tensorflow_version_shown)
    runs = None
    if version is None and len(node.args) > 1:
        version, runs = _observed_version_and_run_count(context, node)
        if version is None:
            yield Finding(
                node,
                "the second argument of tf.nn.dropout is keep_prob in TensorFlow 1 and rate in TensorFlow 2. "
                "Pass it by keyword",
                asks=(Question(FUNCTION, node.func),),
            )
            return
    version = version or 1
    bound = bind_arguments(node, _KERAS_LEVEL if keras else DROPOUT_V1 if version == 1 else DROPOUT_V2)
    rate = "level" if keras else "rate"
    if bound.hidden:
        yield Finding(
            node, "the arguments of dropout are hidden behind * or **. Write npu_ops.dropout(x, keep_prob=...)"
        )
        return
    if bound.is_given("noise_shape"):
        yield Finding(
            node,
            "the NPU operator has no noise_shape. Use npu_ops.dropout(x, keep_prob=...) if the model allows it",
        )
        return
    edits: list[Edit] = [edit_to_rename(source, node.func, "npu_ops.dropout")]
    if version == 1 and rate in bound.positional:
        yield Finding(node, "the rate of dropout is positional. Write npu_ops.dropout(x, keep_prob=...)")
        return
    if bound.is_given(rate):
        if bound.is_given("keep_prob"):
            return  # TensorFlow raises an error for both
        edits += edits_to_keep_probability(source, bound.args[rate])
        keyword = bound.keywords.get(rate)
        if keyword:
            edits.append(rename_keyword(source, node, keyword, "keep_prob"))
    elif not bound.is_given("keep_prob"):
        return
    yield Change(node, "dropout replaced with the NPU operator", tuple(edits), ("npu_ops",), runs)


def _observed_version_and_run_count(context: Context, node: ast.Call) -> tuple[int | None, int | None]:
    """Return the version of which the observed runs called the dropout, and their number; None without."""
    seen = context.observed_at(CODE, FUNCTION, node.func)
    parameters = seen.only("parameters") if seen is not None else None
    second = parameters[1:2] if isinstance(parameters, tuple) else ()
    version = {DROPOUT_V1[1:2]: 1, DROPOUT_V2[1:2]: 2}.get(second)
    return version, seen.runs if seen is not None and version else None


def _tensorflow_version_shown(context: Context) -> int | None:
    """Return the major version of ``tensorflow`` that the imports and calls of a file show.

    Return None if they show no version, or both. Names that the tool has replaced count too.
    """
    one = replaced = ported = False
    two = _imports_compat_v1_without_fallback(context.names)
    for call in context.names.calls:
        spelled = context.names.spelled_name(call.node.func, call.where) or ""
        name = context.resolve(call.node.func, call.where)
        ported = ported or (name or "").startswith("npu_shim.")
        if spelled.startswith(_REPLACED_OF_1):
            replaced = True
        elif name not in _REPLACED:
            one = one or spelled in _ONLY_IN_1 or spelled.startswith(_MODULES_OF_1) or name == _HOROVOD_OF_1
            two = two or spelled in _ONLY_IN_2 or is_known_tf2_spelling(spelled) or spelled.startswith(_COMPAT + ".")
    for node, where in context.names.classes:
        for base in node.bases:
            one = one or (context.names.spelled_name(base, where) or "").startswith(_MODULES_OF_1)
    for function in context.names.functions:
        for decorator in getattr(function.node, "decorator_list", ()):
            name = context.names.spelled_name(decorator, function.where)
            two = two or name in _ONLY_IN_2
    if two:
        return None if one or replaced or ported else 2
    return 1 if one or replaced else None


def _imports_compat_v1_without_fallback(names: Names) -> bool:
    """Return True if a file imports tensorflow.compat.v1 without a fallback for TensorFlow 1."""
    scopes = {id(where.scope): where.scope for where in names.places.values()}
    return any(
        len(bindings) == 1 and bindings[0].kind == "import" and bindings[0].target.startswith(_COMPAT)
        for scope in scopes.values()
        for bindings in scope.bindings.values()
    )
