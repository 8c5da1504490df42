"""Replace tf.distribute strategies with NPU ranks (with ``-d tf_strategy``).

On NPUs, each rank runs the whole script on one NPU. The rule replaces a strategy with synchronous replicas by
``npu_strategy.NPUStrategy()``, in the run configuration of an Estimator, for its scope, its number of replicas and
its datasets. The ranks are its replicas: the strategy shards the data, gives all ranks the same variables and sums
their gradients. The batch sizes and the learning rate of the script stay right. Without ``-d tf_strategy``,
strategies are not converted (see NPU250).

The rule reports these strategies:

* Strategies with parameter servers. For synchronous training, write ``npu_strategy.NPUStrategy()``. For parameter
  servers, which require NPUs, use ``NPUEstimator`` with
  ``NPURunConfig(distribute=ParameterServerStrategy(), mix_compile_mode=True, iterations_per_loop=1)``.
* Strategies for TPUs, and run configurations with a strategy of unknown kind. For synchronous training, write
  ``npu_strategy.NPUStrategy()``.
* Strategies in programs of TensorFlow 2. Each rank is a process there: make the optimizer average gradients with
  ``npu.distribute.npu_distributed_keras_optimizer_wrapper()``, shard the data with
  ``npu.distribute.shard_and_rebatch_dataset()``, and send the first weights with ``npu.distribute.broadcast()``.
* Strategies in programs of TensorFlow 1 that are eager. Call ``tf.compat.v1.disable_v2_behavior()`` at the start.

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

Untouched::

    import tensorflow as tf

    strategy = tf.distribute.experimental.ParameterServerStrategy()

Untouched::

    from mycompany.games import MirroredStrategy
    import tensorflow as tf

    strategy = MirroredStrategy(2)

Untouched::

    import tensorflow as tf

    def is_mirrored(strategy):
        return isinstance(strategy, tf.distribute.MirroredStrategy)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.eager import uses_eager
from ...analysis.strategies import NAMES, REPLICAS, strategies_by_argument
from ...analysis.tensorflow_version import is_two
from ...rewrite.call_edits import rename
from ...semantics.model import Call
from ..base import Change, Context, Finding, Result

CODE = "NPU302"
NEEDS = {"distributed": "tf_strategy"}
_NEW = "npu_strategy.NPUStrategy()"


def check_file(context: Context) -> Iterator[Result]:
    if context.distributed != "tf_strategy" or not any(
        word in context.source.text for word in ("Strategy", "_distribute")
    ):
        return
    eager = uses_eager(context)
    for call in context.names.calls:
        yield from _configuration(context, call)
    for call in context.names.calls:
        kind = NAMES.get(context.resolve(call.node.func, call.where) or "")
        if kind is None or in_test(context, call.node):
            continue
        if kind != REPLICAS:
            yield Finding(
                call.node,
                f"this strategy {kind} and is not converted. For synchronous training write {_NEW}",
            )
        elif is_two(context):
            yield Finding(
                call.node,
                "this strategy finds no NPUs. Wrap the optimizer in "
                "npu.distribute.npu_distributed_keras_optimizer_wrapper(), and shard the data with "
                "npu.distribute.shard_and_rebatch_dataset()",
            )
        elif eager:
            yield Finding(
                call.node,
                f"this strategy is used eagerly. Call tf.compat.v1.disable_v2_behavior() at the start and write {_NEW}",
            )
        else:
            yield Change(
                call.node,
                "strategy replaced with NPUStrategy",
                (rename(context.source, call.node, _NEW),),
                ("npu_strategy",),
            )


def _configuration(context: Context, call: Call) -> Iterator[Result]:
    """Report a run configuration whose strategies may be of a kind that is not converted."""
    for argument, kinds in sorted(strategies_by_argument(context, call.node, call.where).items()):
        if kinds != {REPLICAS}:
            yield Finding(
                call.node,
                f"the strategy in {argument} is not known. For synchronous training write {argument}={_NEW}",
            )
