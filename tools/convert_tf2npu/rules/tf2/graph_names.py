"""Calls of tf.compat.v1 in eager programs.

On the NPU, calls of ``tf.compat.v1`` that build or run graphs must not be mixed with eager code: they create variables
and sessions that the NPU's eager device does not know. Use the names of TensorFlow 2. Logging, flags, files and
configurations are harmless, and so is code that builds a graph of its own. The rule reports one finding for each name in a
file. It reports a session that is made for the memory of GPUs, and that nothing runs, in all programs of TensorFlow 2.

Reported::

    import tensorflow as tf

    weight = tf.compat.v1.get_variable('weight', [3])

    @tf.function
    def step(x):
        return x * weight

Reported::

    import tensorflow as tf

    optimizer = tf.compat.v1.train.AdamOptimizer(1e-3)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = model(x)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

Reported::

    import tensorflow as tf

    config = tf.compat.v1.ConfigProto()
    config.gpu_options.allow_growth = True
    session = tf.compat.v1.Session(config=config)

    model = tf.keras.models.load_model('model')
    model.fit(dataset)

Untouched::

    import tensorflow as tf

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow.compat.v1 as tf

    def build():
        return tf.get_variable('weight', [3])

Untouched::

    import tensorflow as tf

    def frozen(path):
        with tf.Graph().as_default():
            return tf.compat.v1.get_variable('weight', [3])

    @tf.function
    def step(x):
        return model(x)
"""

from __future__ import annotations

import ast
import functools
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.tensorflow_version import is_eager_file, is_idle_session, is_imported_by_graph_program
from ...tf_api.v1_fate import V1, name_below_tensorflow
from ..base import Context, Finding, Message

CODE = "NPU279"
# The parts of compat.v1 that build and run graphs, and what eager code has instead.
_INSTEAD = {
    "InteractiveSession": "Remove it: eager code needs no session",
    "Session": "Remove it: eager code needs no session",
    "assign": "Use variable.assign",
    "data.make_initializable_iterator": "Loop over the dataset",
    "data.make_one_shot_iterator": "Loop over the dataset",
    "get_variable": "Use tf.Variable",
    "global_variables_initializer": "Remove it: eager variables have their values",
    "layers": Message("Use {0}", "tf.keras.layers"),
    "local_variables_initializer": "Remove it: eager variables have their values",
    "losses": Message("Use {0}", "tf.keras.losses"),
    "metrics": Message("Use {0}", "tf.keras.metrics"),
    "placeholder": "Pass a tensor to a tf.function",
    "train.AdadeltaOptimizer": Message("Use {0}", "tf.keras.optimizers.Adadelta"),
    "train.AdagradOptimizer": Message("Use {0}", "tf.keras.optimizers.Adagrad"),
    "train.AdamOptimizer": Message("Use {0}", "tf.keras.optimizers.Adam"),
    "train.GradientDescentOptimizer": Message("Use {0}", "tf.keras.optimizers.SGD"),
    "train.MomentumOptimizer": "Use tf.keras.optimizers.SGD with momentum",
    "train.RMSPropOptimizer": Message("Use {0}", "tf.keras.optimizers.RMSprop"),
    "train.Saver": Message("Use {0}", "tf.train.Checkpoint"),
    "train.get_or_create_global_step": "Use optimizer.iterations",
    "variable_scope": "Use tf.Variable and tf.Module",
}
_SWITCHES = frozenset({"tensorflow.enable_eager_execution", "tensorflow.enable_v2_behavior"})
_GRAPHS = ("Graph", "wrap_function")


def check_file(context: Context) -> Iterator[Finding]:
    if "compat" not in context.source.text or context.compat_v1:
        return
    reported: set[str] = set()
    called = context.called_names
    different = set(called.values())
    if not _SWITCHES.isdisjoint(different):
        return  # TensorFlow 1, whose names these are
    if not any(map(_graph_name_key, different)):
        return
    for call in context.names.calls:
        graph_name = _graph_name_key(called.get(call.node, ""))
        if not graph_name or graph_name in reported:
            continue
        spelled = context.names.spelled_name(call.node.func, call.where) or ""
        if not spelled.startswith(V1 + ".") or not (is_eager_file(context) or is_idle_session(context, call.node)):
            continue
        if (
            _is_graph_code(context, call.node)
            or is_in_test(context, call.node)
            or is_imported_by_graph_program(context)
        ):
            continue
        reported.add(graph_name)
        yield Finding(
            call.node,
            "tf.compat.v1.{0} must not be mixed with eager code. {1}",
            name_below_tensorflow(spelled.replace(".compat.v1", "")),
            _INSTEAD[graph_name],
        )


@functools.lru_cache(maxsize=4096)
def _graph_name_key(name: str) -> str:
    """Return the key of a name in the table of names for graphs, or ""."""
    rest = name_below_tensorflow(name) if name.startswith("tensorflow.") else ""
    return next((key for key in _INSTEAD if rest == key or rest.startswith(key + ".")), "")


def _is_graph_code(context: Context, node: ast.AST) -> bool:
    """Return True if code builds a graph of its own, or runs only without eager execution."""
    child = node
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.With) and any(
            word in context.source.segment(item.context_expr) for item in parent.items for word in _GRAPHS
        ):
            return True
        if isinstance(parent, ast.FunctionDef) and "mode" in [argument.arg for argument in parent.args.args]:
            return True  # of an Estimator
        if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
            test = context.source.segment(parent.test)
            if any(word in test.lower() for word in ("eager", "version", "graph")):
                return True
        child = parent
    return False
