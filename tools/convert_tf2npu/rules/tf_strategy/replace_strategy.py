"""Give the ranks of the NPU the place of a strategy's replicas (with ``-d tf_strategy``).

On NPUs each rank runs the whole script on one card. A strategy that trains replicas in step becomes
``npu_strategy.NPUStrategy()``, in a run configuration of Estimators, for its scope, its number of replicas and
its datasets: its replicas are the ranks. It parts the data among them, gives all of them the same variables and
adds up their gradients, so that the batch sizes and the learning rate of the script stay right. Strategies with
parameter servers or for TPUs are told. Without ``-d tf_strategy`` strategies stay (see NPU250).

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
from ...analysis.strategies import NAMES, REPLICAS, SERVERS, taken
from ...rewrite.call_edits import rename
from ...semantics.model import Call
from ..base import Change, Context, Finding, Result

CODE = "NPU302"
NEEDS = {"distributed": "tf_strategy"}
_NEW = "npu_strategy.NPUStrategy()"
_SERVERS = (
    "for parameter servers write NPURunConfig(distribute=ParameterServerStrategy(), mix_compile_mode=True, "
    "iterations_per_loop=1) and NPUEstimator, which only cards have; for ranks that train in step write " + _NEW
)


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
                "a strategy that {} has no counterpart here; {}".format(
                    kind, _SERVERS if kind == SERVERS else "for cards that train in step write " + _NEW
                ),
            )
        elif eager:
            yield Finding(
                call.node,
                "this strategy seems to be used eagerly; on the NPU it trains in graph mode: "
                "tf.compat.v1.disable_v2_behavior() at the start, then " + _NEW,
            )
        else:
            yield Change(
                call.node,
                "the strategy of the NPU takes the place of this one",
                (rename(context.source, call.node, _NEW),),
                ("npu_strategy",),
            )


def _configuration(context: Context, call: Call) -> Iterator[Result]:
    """What is to be said of a run configuration whose strategies may be others than those that become the NPU's."""
    for argument, kinds in sorted(taken(context, call.node, call.where).items()):
        if kinds != {REPLICAS}:
            yield Finding(
                call.node,
                f"it is not to be seen that {argument} only trains replicas in step; where it does, write "
                f"{argument}={_NEW}, and {_SERVERS}",
            )
