"""Replace tf.distribute strategies with NPU ranks (with ``-d tf_strategy``).

On NPUs, each rank runs the whole script on one NPU. The rule replaces a strategy with synchronous replicas by
``npu_strategy.NPUStrategy()``, in the run configuration of an Estimator, for its scope, its number of replicas and
its datasets. The ranks are its replicas: the strategy shards the data, gives all ranks the same variables and sums
their gradients. The batch sizes and the learning rate of the script stay right. Without ``-d tf_strategy``,
strategies are not converted (see NPU250).

In programs of TensorFlow 2 the strategy is ``npu.distribute.NPUStrategy()``. Programs that only evaluate, in which nothing
opens the device, keep their strategies. The default strategy, if the script
enters its scope, is replaced, too. Losses must be divided by the global batch size, as with the strategies of
TensorFlow. Batch normalization uses the statistics of one replica, and its moving averages are the means over the
replicas, as with MirroredStrategy.

The rule reports these strategies:

* Strategies with parameter servers. For synchronous training, write ``npu_strategy.NPUStrategy()``. For parameter
  servers, which require NPUs, use ``NPUEstimator`` with
  ``NPURunConfig(distribute=ParameterServerStrategy(), mix_compile_mode=True, iterations_per_loop=1)``.
* Strategies for TPUs, and run configurations with a strategy of unknown kind. For synchronous training, write
  ``npu_strategy.NPUStrategy()``.
* Strategies of a class that the project, or Sonnet, derives from one of TensorFlow. Derive it from ``NPUStrategy``.
* Strategies in modules that programs of both versions import. Choose the strategy by the version.
* Strategies in programs of TensorFlow 1 that are eager. Call ``tf.compat.v1.disable_v2_behavior()`` at the start.
* ``None`` or nothing in place of a strategy, as for a single GPU, in a training loop of TensorFlow 2: ranks that see no
  GPUs take this path, and each trains on its own. Use the strategy and its scope on all paths.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    def main(_):
        strategy = tf.distribute.MirroredStrategy(devices=['/gpu:0', '/gpu:1'])
        config = tf.estimator.RunConfig(
            train_distribute=strategy,
            eval_distribute=strategy,
            save_checkpoints_steps=500)
        estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir, config)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def main(_):
        strategy = npu_strategy.NPUStrategy()
        config = NPURunConfig(
            train_distribute=strategy,
            eval_distribute=strategy,
            save_checkpoints_steps=500)
        estimator = NPUEstimator(model_fn, FLAGS.model_dir, config)

Before::

    import tensorflow as tf

    strategy = tf.contrib.distribute.MirroredStrategy(num_gpus=4)
    batch_size = 32 * strategy.num_replicas_in_sync
    with strategy.scope():
        model = build()

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    strategy = npu_strategy.NPUStrategy()
    batch_size = 32 * strategy.num_replicas_in_sync
    with strategy.scope():
        model = build()

Before::

    import tensorflow as tf

    options = tf.distribute.experimental.CommunicationOptions()
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
    model.fit(dataset)

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    options = tf.distribute.experimental.CommunicationOptions()
    strategy = npu.distribute.NPUStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)

Untouched::

    import tensorflow as tf

    strategy = tf.distribute.experimental.ParameterServerStrategy()

Untouched::

    import tensorflow as tf

    class Replicator(tf.distribute.MirroredStrategy):
        pass

    strategy = Replicator(['/gpu:0', '/gpu:1'])

Untouched::

    from mycompany.games import MirroredStrategy
    import tensorflow as tf

    strategy = MirroredStrategy(2)

Untouched::

    import tensorflow as tf

    tf.random.set_seed(1)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = tf.keras.models.load_model('model.h5')
    model.evaluate(images[:n], labels[:n])

Untouched::

    import tensorflow as tf

    def is_mirrored(strategy):
        return isinstance(strategy, tf.distribute.MirroredStrategy)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.eager_training import uses_eager
from ...analysis.opening import is_graph_mode_undecided, must_open_for_both_versions, starts_training_without_device
from ...analysis.parallel_training import has_custom_training_loop, is_default_strategy, trains_on_ranks
from ...analysis.strategies import NAMES, REPLICAS, creates_custom_strategy, strategies_by_argument
from ...analysis.tensorflow_version import Version, is_tf2_program, version_verdict
from ...rewrite.call_edits import edit_to_rename
from ...rewrite.npu_imports import device_name
from ...semantics.model import Call
from ...syntax.expressions import is_none, last_name
from ..base import Change, Context, Finding

CODE = "NPU302"
NEEDS = {"distributed": "tf_strategy"}
_NEW = "npu_strategy.NPUStrategy()"


def check_file(context: Context) -> Iterator[Change | Finding]:
    if not any(word in context.source.text for word in ("Strategy", "_distribute", "get_strategy")):
        return
    if is_graph_mode_undecided(context):
        return  # NPU121
    eager = uses_eager(context)
    for call in context.names.calls:
        yield from _findings_of_configuration(context, call)
    for call in context.names.calls:
        name = context.resolve(call.node.func, call.where) or ""
        kind = NAMES.get(name)
        other = (
            _path_without_strategy(call.node, context)
            if trains_on_ranks(context) and has_custom_training_loop(context)
            else None
        )
        if other is not None and (kind == REPLICAS or name.endswith(".NPUStrategy")):
            yield Finding(
                other,
                "without a strategy each rank trains on its own. Use "
                "{0}.distribute.NPUStrategy() and its scope on this path, too",
                device_name(context.names),
            )
        if trains_on_ranks(context) and is_default_strategy(context.names, call.node, name):
            kind = REPLICAS
        is_own = kind is None and creates_custom_strategy(context.names, call.node, call.where)
        if kind is None and not is_own or is_in_test(context, call.node):
            continue
        if is_tf2_program(context) and not version_verdict(context).on_npu:
            continue  # without a device NPUStrategy fails
        if is_own:
            yield Finding(
                call.node,
                "this strategy is of a class of its own and is not converted. Derive the class from {0}",
                f"{device_name(context.names)}.distribute.NPUStrategy"
                if is_tf2_program(context)
                else "npu_strategy.NPUStrategy",
            )
        elif kind != REPLICAS:
            new = f"{device_name(context.names)}.distribute.NPUStrategy()" if is_tf2_program(context) else _NEW
            yield Finding(
                call.node, "this strategy {0} and is not converted. For synchronous training write {1}", kind, new
            )
        elif is_tf2_program(context):
            name = device_name(context.names)
            yield Change(
                call.node,
                "strategy replaced with NPUStrategy",
                (edit_to_rename(context.source, call.node, f"{name}.distribute.NPUStrategy()"),),
                (name,),
            )
        elif eager:
            yield Finding(
                call.node,
                "this strategy is used eagerly. Call tf.compat.v1.disable_v2_behavior() at the start and write {0}",
                _NEW,
            )
        elif version_verdict(context).version == Version.BOTH and not _builds_graphs(context):
            yield Finding(
                call.node,
                "programs of TensorFlow 1 and 2 use this strategy. "
                "Write {0}.distribute.NPUStrategy() for TensorFlow 2, {1} for TensorFlow 1",
                device_name(context.names),
                _NEW,
            )
        else:
            yield Change(
                call.node,
                "strategy replaced with NPUStrategy",
                (edit_to_rename(context.source, call.node, _NEW),),
                ("npu_strategy",),
            )


def _builds_graphs(context: Context) -> bool:
    """Return True if a script of both versions, which is not undecided, trains in graphs."""
    return starts_training_without_device(context) and not must_open_for_both_versions(context)


def _path_without_strategy(call: ast.Call, context: Context) -> ast.AST | None:
    """Return the None, or the other path of a condition, that a script has in place of a strategy."""
    parent = context.names.parents.get(call)
    if isinstance(parent, ast.IfExp):
        return next((value for value in (parent.body, parent.orelse) if is_none(value)), None)
    condition = context.names.parents.get(parent) if isinstance(parent, ast.Assign) else None
    if not isinstance(condition, ast.If) or not isinstance(parent, ast.Assign):
        return None
    held = {ast.dump(target) for target in parent.targets}
    others = [
        other
        for other in [*condition.body, *condition.orelse]
        if isinstance(other, ast.Assign) and other is not parent and not held.isdisjoint(map(ast.dump, other.targets))
    ]
    if not others and any("scope" in map(last_name, ast.walk(statement)) for statement in condition.body):
        assigned = _assigned_names(condition.body)
        return next((other for other in condition.orelse if not assigned.isdisjoint(_assigned_names([other]))), None)
    return next((other for other in others if is_none(other.value)), None)


def _assigned_names(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements assign."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _findings_of_configuration(context: Context, call: Call) -> Iterator[Finding]:
    """Report a run configuration whose strategies may be of a kind that is not converted."""
    for argument, kinds in sorted(strategies_by_argument(context, call.node, call.where).items()):
        if kinds != {REPLICAS}:
            yield Finding(
                call.node,
                "the strategy in {0} is not known. For synchronous training write {1}={2}",
                argument,
                argument,
                _NEW,
            )
