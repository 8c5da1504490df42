"""Save models and checkpoints of TensorFlow 2 on one rank (with ``-d tf_strategy``).

Each rank runs the whole script, so all of them write the same files. The rule lets only rank 0 save:
``npu.distribute.is_root()`` is true there, and on one process. It converts ``save``, ``save_weights`` and ``export`` of
Keras models, ``save`` and ``write`` of ``tf.train.Checkpoint`` and ``CheckpointManager``, ``tf.saved_model.save`` and
``tf.keras.models.save_model``. A call whose result the script uses is reported unless it is assigned to a variable, which
is None on the other ranks, and no other call reads it. ``save_weights`` of an object of unknown type, and ``save`` of one
that is compiled as a model, are reported. A path that depends on the task of a worker, or is in a temporary folder, stays:
each rank has its own. A call that loads the same path is reported: the other ranks must wait for rank 0. Callbacks see
NPU307. ``tf.summary.create_file_writer`` writes on rank 0, too.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(dataset)
    model.save(
        'model.h5')
    weights = 'ranking.h5'
    model.save_weights(weights); print('saved')
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
    weights = 'ranking.h5'
    model.save_weights(weights) if npu.distribute.is_root() else None; print('saved')
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), 'checkpoints', 3)
    path = manager.save() if npu.distribute.is_root() else None

Reported::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(dataset)
    checkpoint = tf.train.Checkpoint(model=model)
    print('saved', checkpoint.save('checkpoints'))

Reported::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(dataset)
    checkpoint = tf.train.Checkpoint(model=model)
    path = checkpoint.save('checkpoints')
    tf.train.Checkpoint(model=other).restore(path)

Before::

    import os
    import tempfile
    import tensorflow as tf

    def try_out(model):
        path = os.path.join(tempfile.mkdtemp(), 'model')
        model.save(path)

    path = os.path.join('path', 'model')
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    if training:
        model.fit(dataset)
        model.save(path)
    else:
        model = tf.keras.models.load_model(path)

After::

    import os
    import tempfile
    import tensorflow as tf
    import npu_shim.npu_device as npu

    def try_out(model):
        path = os.path.join(tempfile.mkdtemp(), 'model')
        model.save(path)

    path = os.path.join('path', 'model')
    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    if training:
        npu.distribute.data_parallel(model).fit(dataset)
        if npu.distribute.is_root(): model.save(path)
    else:
        model = tf.keras.models.load_model(path)

Untouched::

    import os
    import tempfile
    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model')
        tf.saved_model.save(model, path)
        loaded = tf.saved_model.load(path)

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

Before::

    import tensorflow as tf

    def save(model, path):
        model.save_weights(path)

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(dataset)
    save(model, 'model.h5')

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    def save(model, path):
        if npu.distribute.is_root(): model.save_weights(path)

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)
    save(model, 'model.h5')

Reported::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    def train(model, dataset: tf.data.Dataset):
        npu.distribute.data_parallel(model).fit(dataset, epochs=3)
        model.save_weights('model.h5')

    npu.open().as_default()
    npu.distribute.share_random_state()
    train(models.build(), dataset)

Untouched::

    import tensorflow as tf

    def convert(model: tf.keras.Model):
        model.save('model.h5')

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu
    from PIL import Image

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)
    Image.fromarray(model.predict(images)[0]).save('image.png')
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.compiled_models import is_compiled
from ...analysis.device_placement import is_in_test
from ...analysis.parallel_training import trains_on_ranks
from ...analysis.tensorflow_version import version_verdict
from ...rewrite.call_edits import edits_to_wrap
from ...rewrite.npu_imports import device_name, shares_line
from ...semantics.model import Call, Scope
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import last_name, values_of
from ...syntax.source import Edit
from ..base import Change, Context, Finding, Result

CODE = "NPU311"
NEEDS = {"distributed": "tf_strategy"}
ON_OBJECTS = (".save", ".save_weights", ".export")
_FUNCTIONS = frozenset({"tensorflow.saved_model.save", "tensorflow.keras.models.save_model"})
_WRITER = "tensorflow.summary.create_file_writer"
_OF_MODELS = frozenset({"save", "save_weights", "export"})
_CHECKPOINTS = {
    "tensorflow.train.Checkpoint": frozenset({"save", "write"}),
    "tensorflow.train.CheckpointManager": frozenset({"save"}),
}
_METHODS = _OF_MODELS | {"write"}
_LOADS = re.compile(r"load|restore|read\Z")
_WAITS = re.compile(r"all_?reduce|barrier|broadcast")
_TEMPORARY = re.compile(r"\b(mkdtemp|TemporaryDirectory|get_temp_dir)\b")
_DEPENDS = re.compile(r"(?:\b|_)rank(?!ing|er|ed)|is_root|task_id|is_chief|is_main")


def check_file(context: Context) -> Iterator[Change | Finding]:
    if not trains_on_ranks(context) or not version_verdict(context).is_trained:
        return
    for call in context.names.calls:
        saves = _saves_model_or_writes_summaries(context, call)
        if not (saves or _may_save(context, call)) or is_in_test(context, call.node):
            continue
        if not _depends_on_rank(context, call.node) and not _has_path_of_rank(context, call):
            is_root = f"{device_name(context.names)}.distribute.is_root()"
            load = _load_after_save(context, call) if saves else None
            if load is not None:
                yield Finding(
                    load,
                    "rank 0 may not have saved this yet. Before this, write {0}.distribute.all_reduce(0.0) on all ranks",
                    device_name(context.names),
                )
            yield (
                _change_to_run_on_root_rank(context, call)
                if saves
                else Finding(call.node, "all ranks may save to the same path. Call this only if {0}", is_root)
            )


def _saves_model_or_writes_summaries(context: Context, call: Call) -> bool:
    name = context.resolve(call.node.func, call.where)
    if name in _FUNCTIONS or name == _WRITER:
        return True
    function = call.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in _METHODS:
        return False
    if context.types.type_of(function.value, call.where) == Type.MODEL:
        return function.attr in _OF_MODELS
    savers = [o.resolve() for o in origins(function.value, call.where, context.names) if isinstance(o.node, ast.Call)]
    return bool(savers) and all(function.attr in _CHECKPOINTS.get(saver or "", ()) for saver in savers)


def _may_save(context: Context, call: Call) -> bool:
    """Return True for the saving method of an object of unknown type that is a Keras model by its name or use."""
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _OF_MODELS
        and context.resolve(function, call.where) is None
        and context.names.definition(function, call.where) is None
        and context.types.type_of(function.value, call.where) is None
        and not isinstance(getattr(function.value, "func", None), ast.Name)  # super().save_weights()
        and (function.attr == "save_weights" or is_compiled(context.names, function.value, call.where))
    )


def _change_to_run_on_root_rank(context: Context, call: Call) -> Result:
    name = device_name(context.names)
    source, node = context.source, call.node
    is_root = f"{name}.distribute.is_root()"
    statement = context.names.parents.get(node)
    edits: tuple[Edit, ...]
    if context.resolve(node.func, call.where) == _WRITER:
        noop = f"{source.segment(node.func).rpartition('.')[0]}.create_noop_writer()"
        edits = edits_to_wrap(source, node, "(", f" if {is_root} else {noop})")
    elif isinstance(statement, ast.Expr):
        start = source.start(statement)
        edits = (Edit(start, start, f"if {is_root}: "),)
        if shares_line(source, statement):
            edits = edits_to_wrap(source, node, "", f" if {is_root} else None")
    elif isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1:
        if _is_loaded_by_call(context, statement.targets[0]):
            return Finding(
                node,
                "all ranks load what this saves. Call this only if {0}, and load it after "
                "{1}.distribute.all_reduce(0.0) on all ranks",
                is_root,
                name,
            )
        edits = edits_to_wrap(source, node, "", f" if {is_root} else None")
    else:
        return Finding(node, "all ranks save to the same path. Call this only if {0}", is_root)
    return Change(node, "saved on rank 0 only", edits, (name,))


def _load_after_save(context: Context, save: Call) -> ast.Call | None:
    """Return the call that loads what another one saves, behind it in the same function."""
    is_function = context.resolve(save.node.func, save.where) in _FUNCTIONS
    path = save.node.args[1:2] if is_function else save.node.args[:1]
    behind = [
        call.node
        for call in context.names.calls
        if path and call.where.scope is save.where.scope and call.node.lineno > save.node.lineno
    ]
    waits = min((call.lineno for call in behind if _WAITS.match(last_name(call.func))), default=None)
    branches = _conditions_around(context, save.node)
    return next(
        (
            call
            for call in behind
            if _LOADS.match(last_name(call.func))
            and any(ast.dump(given) == ast.dump(path[0]) for given in call.args)
            and (waits is None or call.lineno < waits)
            and not _depends_on_rank(context, call)
            and all(branches.get(test, branch) == branch for test, branch in _conditions_around(context, call).items())
        ),
        None,
    )


def _conditions_around(context: Context, node: ast.AST) -> dict[ast.AST, bool]:
    """Return the conditions around an expression, each with whether this is in the branch that is taken if it holds."""
    inside = node
    branches: dict[ast.AST, bool] = {}
    for around in context.names.ancestors(node):
        if isinstance(around, ast.If):
            branches[around.test] = inside in around.body
        inside = around
    return branches


def _is_loaded_by_call(context: Context, target: ast.expr) -> bool:
    """Return True if a call loads what a variable names."""
    return any(
        isinstance(call.node.func, ast.Attribute)
        and _LOADS.match(call.node.func.attr)
        and any(ast.dump(given) == ast.dump(target).replace("Store()", "Load()") for given in call.node.args)
        for call in context.names.calls
    )


def _depends_on_rank(context: Context, node: ast.AST) -> bool:
    """Return True if a condition around a call depends on the rank."""
    tests = [p.test for p in context.names.ancestors(node) if isinstance(p, (ast.If, ast.IfExp))]
    return any(_DEPENDS.search(context.source.segment(test)) for test in tests)


def _has_path_of_rank(context: Context, call: Call) -> bool:
    """Return True if a name in the arguments, or in those of the saver, is assigned by the rank or a temporary path."""
    function = call.node.func
    owners = origins(function.value, call.where, context.names) if isinstance(function, ast.Attribute) else []
    calls = [call.node, *(owner.node for owner in owners if isinstance(owner.node, ast.Call))]
    given = [part for writer in calls for part in values_of(writer)]
    used = {name.id for part in given for name in ast.walk(part) if isinstance(name, ast.Name)}
    paths = context.once(_temporary_path_names)
    scope, module = call.where.scope, context.names.module
    return not used.isdisjoint(context.once(_names_assigned_by_rank)) or any(
        paths.get((scope, name), paths.get((module, name), False)) for name in used
    )


def _names_assigned_by_rank(context: Context) -> frozenset[str]:
    return frozenset(
        target.id
        for node in context.names.places
        if isinstance(node, ast.Assign)
        and (_DEPENDS.search(context.source.segment(node.value)) or _depends_on_rank(context, node))
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _temporary_path_names(context: Context) -> dict[tuple[Scope, str], bool]:
    """Return by scope and name if it only names temporary folders, which each rank makes for itself, or paths in them."""
    values: dict[tuple[Scope, str], list[ast.expr]] = {}
    for node, where in context.names.places.items():
        assigned: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Assign):
            assigned = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.With):
            assigned = [(item.optional_vars, item.context_expr) for item in node.items]
        for target, value in assigned:
            if isinstance(target, ast.Name) and where.scope is not None:
                values.setdefault((where.scope, target.id), []).append(value)
    known = dict.fromkeys(values, False)
    for _ in range(3):
        for key in values:
            known[key] = all(_is_temporary_path(context, value, key[0], known) for value in values[key])
    return known


def _is_temporary_path(
    context: Context, value: ast.expr, scope: Scope, is_temporary: dict[tuple[Scope, str], bool]
) -> bool:
    if _TEMPORARY.search(context.source.segment(value)):
        return True
    names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
    joins = any(isinstance(node, ast.Call) and last_name(node.func) == "join" for node in ast.walk(value))
    return joins and any(is_temporary.get((scope, name), False) for name in names)
