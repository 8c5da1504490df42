"""Save models and checkpoints of TensorFlow 2 on one rank (with ``-d tf_strategy``).

Each rank runs the whole script, so all of them write the same files. The rule lets only rank 0 save:
``npu.distribute.is_root()`` is true there, and on one process. It converts ``save``, ``save_weights`` and ``export`` of
Keras models, ``save`` and ``write`` of ``tf.train.Checkpoint`` and ``CheckpointManager``, ``tf.saved_model.save`` and
``tf.keras.models.save_model``. A call whose result the script uses is reported unless it is assigned to a variable, which
is None on the other ranks. A path that depends on the task of a worker stays: the script gives each rank its own folder.
Callbacks see NPU307. ``tf.summary.create_file_writer`` writes on rank 0, too.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(dataset)
    model.save(
        'model.h5')
    model.save_weights('weights.h5'); print('saved')
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), 'checkpoints', 3)
    path = manager.save()

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)
    if npu.distribute.is_root(): model.save(
        'model.h5')
    model.save_weights('weights.h5') if npu.distribute.is_root() else None; print('saved')
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), 'checkpoints', 3)
    path = manager.save() if npu.distribute.is_root() else None

Reported::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(dataset)
    checkpoint = tf.train.Checkpoint(model=model)
    print('saved', checkpoint.save('checkpoints'))

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)
    if npu.distribute.is_root():
        model.save('model.h5')

Untouched::

    import os
    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    strategy = npu.distribute.NPUStrategy()
    task_id = strategy.cluster_resolver.task_id
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)
    path = os.path.join('models', 'of_worker_%d' % task_id)
    model.save(path)
    if task_id != 0:
        tf.io.gfile.rmtree(path)

Untouched::

    import tensorflow as tf

    def convert(model: tf.keras.Model):
        model.save('model.h5')
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.parallel_training import is_parallel
from ...analysis.tensorflow_version import verdict
from ...rewrite.call_edits import wrap
from ...rewrite.npu_imports import device_name, shares_line
from ...semantics.model import Call
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.source import Edit
from ..base import Change, Context, Finding, Result

CODE = "NPU311"
NEEDS = {"distributed": "tf_strategy"}
_FUNCTIONS = frozenset({"tensorflow.saved_model.save", "tensorflow.keras.models.save_model"})
_WRITER = "tensorflow.summary.create_file_writer"
_OF_MODELS = frozenset({"save", "save_weights", "export"})
_CHECKPOINTS = {
    "tensorflow.train.Checkpoint": frozenset({"save", "write"}),
    "tensorflow.train.CheckpointManager": frozenset({"save"}),
}
_METHODS = _OF_MODELS | {"write"}
_DEPENDS = re.compile(r"\brank|_rank|is_root|task_id|is_chief|is_main|local_rank")


def check_file(context: Context) -> Iterator[Result]:
    if not is_parallel(context) or not verdict(context).is_trained:
        return
    for call in context.names.calls:
        if _saves(context, call) and not in_test(context, call.node) and not _depends_on_rank(context, call.node):
            if not _has_path_of_rank(context, call):
                yield _on_root(context, call)


def _saves(context: Context, call: Call) -> bool:
    name = context.resolve(call.node.func, call.where)
    if name in _FUNCTIONS or name == _WRITER:
        return True
    function = call.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in _METHODS:
        return False
    if context.types.of(function.value, call.where) == Type.MODEL:
        return function.attr in _OF_MODELS
    made = [o.resolve() for o in origins(function.value, call.where, context.names) if isinstance(o.node, ast.Call)]
    return bool(made) and all(function.attr in _CHECKPOINTS.get(each or "", ()) for each in made)


def _on_root(context: Context, call: Call) -> Result:
    name = device_name(context.names)
    source, node = context.source, call.node
    is_root = f"{name}.distribute.is_root()"
    statement = context.names.parents.get(node)
    edits: tuple[Edit, ...]
    if context.resolve(node.func, call.where) == _WRITER:
        noop = f"{source.segment(node.func).rpartition('.')[0]}.create_noop_writer()"
        edits = wrap(source, node, "(", f" if {is_root} else {noop})")
    elif isinstance(statement, ast.Expr):
        start = source.start(statement)
        edits = (Edit(start, start, f"if {is_root}: "),)
        if shares_line(source, statement):
            edits = wrap(source, node, "", f" if {is_root} else None")
    elif isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1:
        edits = wrap(source, node, "", f" if {is_root} else None")
    else:
        return Finding(node, f"all ranks save to the same path. Call this only if {is_root}")
    return Change(node, "saved on rank 0 only", edits, (name,))


def _depends_on_rank(context: Context, node: ast.AST) -> bool:
    """Return True if a condition around a call depends on the rank."""
    tests = [p.test for p in context.names.ancestors(node) if isinstance(p, (ast.If, ast.IfExp))]
    return any(_DEPENDS.search(context.source.segment(test)) for test in tests)


def _has_path_of_rank(context: Context, call: Call) -> bool:
    """Return True if a name in the arguments, or in those of the saver, is assigned by the rank."""
    function = call.node.func
    owners = origins(function.value, call.where, context.names) if isinstance(function, ast.Attribute) else []
    calls = [call.node, *(owner.node for owner in owners if isinstance(owner.node, ast.Call))]
    given = [part for each in calls for part in (*each.args, *(keyword.value for keyword in each.keywords))]
    used = {name.id for part in given for name in ast.walk(part) if isinstance(name, ast.Name)}
    return not used.isdisjoint(context.once(_assigned_by_rank))


def _assigned_by_rank(context: Context) -> frozenset[str]:
    return frozenset(
        target.id
        for node in context.names.places
        if isinstance(node, ast.Assign)
        and (_DEPENDS.search(context.source.segment(node.value)) or _depends_on_rank(context, node))
        for target in node.targets
        if isinstance(target, ast.Name)
    )
