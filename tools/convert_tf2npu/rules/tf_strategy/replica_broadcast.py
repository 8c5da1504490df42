"""Variables that differ between ranks in session.run loops (with ``-d tf_strategy``).

Each rank initializes its variables with random numbers of its own, and averaging gradients keeps the difference.
Estimators, monitored sessions and Keras get a hook that broadcasts the variables of rank 0 (see NPU306). In a loop of
``session.run``, broadcast them yourself:

* In a session, after the initializer and after each restored checkpoint, run
  ``hccl_ops.broadcast(tf.global_variables(), 0)``, also where the initializer runs as ``init.run()`` or in a function
  of another file.
* With ``slim.learning.train``, build this list before the call and pass ``init_fn=lambda sess: sess.run(broadcast)``.
* In a session of a Supervisor or SessionManager, call ``sess.graph._unsafe_unfinalize()`` before you build the list.
* With ``train_on_batch`` of Keras, run the list with ``tf.keras.backend.get_session().run`` before the loop.
* A script that broadcasts its variables with MPI is not reported.
* If an object of unknown type is a Keras model, pass ``callbacks=npu_callbacks_append()`` to its ``fit``.

Options: -d tf_strategy

Reported::

    import tensorflow as tf

    train_op = tf.train.AdamOptimizer().minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train_op)

Reported::

    import tensorflow as tf

    slim = tf.contrib.slim
    slim.learning.train(train_op, FLAGS.logdir)

Reported::

    import tensorflow as tf

    class Agent:
        def __init__(self, network):
            tf.get_default_graph()
            self.model = network
            self.optimizer = tf.keras.optimizers.Adam()

        def learn(self, states, targets):
            self.model.fit(states, targets, epochs=1)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    class Agent:
        def __init__(self, network):
            tf.get_default_graph()
            self.model = network
            self.optimizer = npu_distributed_optimizer_wrapper(tf.keras.optimizers.Adam())

        def learn(self, states, targets):
            self.model.fit(states, targets, epochs=1, callbacks=npu_callbacks_append())

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    train_op = optimizer.minimize(loss)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(hccl_ops.broadcast(tf.global_variables(), 0))
        sess.run(train_op)

Untouched::

    import tensorflow as tf
    from mpi4py import MPI
    from npu_shim.npu_init import *

    train_op = optimizer.minimize(loss)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for variable in tf.global_variables():
            variable.load(MPI.COMM_WORLD.bcast(sess.run(variable)), sess)
        sess.run(train_op)

Untouched::

    import tensorflow as tf

    def predict(sess):
        sess.run(tf.global_variables_initializer())
        print(sess.run(predictions))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import any_file_updates_variables, is_in_test, trains_with_imports
from ...analysis.keras_methods import is_keras_method
from ...analysis.mpi_collectives import BROADCASTS as MPI, calls_mpi
from ...analysis.parallel_training import may_be_eager_program
from ...analysis.tensorflow_evidence import trains_as_keras
from ...rewrite.npu_imports import name_of_tensorflow
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import TRAINING_METHODS, Type
from ...semantics.value_flow import origins
from ...syntax.words import has_words
from ..base import Context, Finding, Message

CODE = "NPU251"
NEEDS = {"distributed": "tf_strategy"}
_INITIALIZERS = frozenset(
    "tensorflow." + name
    for name in """global_variables_initializer variables_initializer
initialize_all_variables initializers.global_variables initializers.variables""".split()
)
_BROADCASTS = frozenset(
    {
        "horovod.BroadcastGlobalVariablesHook",
        "horovod.callbacks.BroadcastGlobalVariablesCallback",
        "npu_shim.npu_init.hccl_ops.broadcast",
        "npu_shim.npu_init.npu_callbacks_append",
    }
)
_SUPERVISED = frozenset({"managed_session", "prepare_or_wait_for_session"})
_METHODS = _SUPERVISED | TRAINING_METHODS | {"run"}


def check_file(context: Context) -> Iterator[Finding]:
    text = context.source.text
    if (
        not has_words(text, (".run(", "session", "learning", *TRAINING_METHODS))
        or may_be_eager_program(context)
        or _broadcasts_variables(context)
    ):
        return
    updates = trains_with_imports(context) or _belongs_to_training(context)
    for call in context.names.calls:
        fix = _fix_of_training_start(context, call, updates)
        if fix and not is_in_test(context, call.node):
            yield Finding(call.node, "ranks start from different variables. {0}", fix)
            return


def _belongs_to_training(context: Context) -> bool:
    """Return True if a file that imports this one, directly or not, updates variables."""
    names = context.names
    return names.is_in_project and any_file_updates_variables(names.project, names.project.with_importers({names.path}))


def _broadcasts_variables(context: Context) -> bool:
    return not _BROADCASTS.isdisjoint(context.called_names.values()) or calls_mpi(
        context.names.tree, context.names, MPI
    )


def _fix_of_training_start(context: Context, call: Call, updates_variables: bool) -> str | None:
    """Return the fix for a call that starts the training, or None for other calls."""
    node, names = call.node, context.names
    tf = name_of_tensorflow(names) or "tf"
    broadcast = f"hccl_ops.broadcast({tf}.global_variables(), 0)"
    if context.resolve(node.func, call.where) == "tensorflow.contrib.slim.learning.train":
        return Message("Build {0} before this and run it in init_fn", broadcast)
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in _METHODS:
        return None
    owner = context.types.type_of(function.value, call.where)
    may_be_keras = trains_as_keras(names, call)
    if function.attr == "train_on_batch" and (may_be_keras or is_keras_method(context, call)):
        return Message("Before the loop run {0} in the Keras session", broadcast)
    if may_be_keras:
        return Message("If this is a Keras model, pass callbacks=npu_callbacks_append() to {0}", function.attr)
    if function.attr in _SUPERVISED and updates_variables and owner is not None:
        return Message("Unfinalize the graph and run {0}", broadcast)
    if updates_variables and function.attr == "run":
        if owner in (None, Type.SESSION) and node.args:
            initializers = [
                m for value in _list_members(node.args[0]) for m in _initializer_calls(value, call.where, names)
            ]
            session = function.value
        else:
            initializers, session = [], None
        if not initializers:
            initializers = _initializer_calls(function.value, call.where, names)
            session = bind_arguments(node, ("feed_dict", "session")).args.get("session")
        if initializers:
            tf = _module_of_initializer(context, initializers[0]) or tf
            run = context.source.segment(session) if session is not None else f"{tf}.get_default_session()"
            return Message("After this, write {0}.run(hccl_ops.broadcast({1}.global_variables(), 0))", run, tf)
    return None


def _initializer_calls(value: ast.expr, where: Where, names: Names) -> list[ast.Call]:
    return [
        o.node for o in origins(value, where, names) if isinstance(o.node, ast.Call) and o.resolve() in _INITIALIZERS
    ]


def _module_of_initializer(context: Context, initializer: ast.Call) -> str | None:
    """Return the module of the initializer as this file writes it, such as tf.compat.v1; None if it cannot be seen."""
    function = initializer.func
    if (
        isinstance(function, ast.Attribute)
        and function.attr.endswith("initializer")
        and function in context.names.parents
    ):
        return context.source.segment(function.value)
    return None


def _list_members(node: ast.expr) -> list:
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else [node]
