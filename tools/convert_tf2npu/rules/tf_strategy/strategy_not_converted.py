"""Strategies of tf.distribute, which do not know cards.

A strategy places replicas on the GPUs, or on the machines, that TensorFlow itself sees. On NPUs each rank runs
the script on a card of its own, and the optimizer averages the gradients. ``-d tf_strategy`` turns strategies
over to that (see NPU302 to NPU306); without it they stay, and train one replica on one rank.

Told::

    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    config = tf.estimator.RunConfig(train_distribute=strategy)

Told::

    import tensorflow as tf

    def config_for(strategy):
        return tf.estimator.RunConfig(model_dir=FLAGS.model_dir).replace(train_distribute=strategy)

Untouched::

    import tensorflow as tf

    strategy = tf.distribute.OneDeviceStrategy('/cpu:0')

Untouched::

    import tensorflow as tf
    from mycompany.games import MirroredStrategy

    strategy = MirroredStrategy()
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.strategies import NAMES, TPU, taken
from ..base import Context, Finding, Result

CODE = "NPU250"
ON_OBJECTS = ("Strategy", "_distribute")
_INSTEAD = "run the tool with -d tf_strategy, which lets each rank train on a card of its own"


def check_file(context: Context) -> Iterator[Result]:
    if context.distributed == "tf_strategy" or not any(word in context.source.text for word in ON_OBJECTS):
        return
    for call in context.names.calls:
        name = context.called.get(call.node, "")
        if in_test(context, call.node) or name.endswith(".OneDeviceStrategy"):
            continue
        if NAMES.get(name, TPU) != TPU:
            yield Finding(
                call.node,
                "a strategy places replicas on devices that TensorFlow sees, and it sees no cards; " + _INSTEAD,
            )
        elif None in {kind for kinds in taken(context, call.node, call.where).values() for kind in kinds}:
            yield Finding(call.node, "an Estimator on the NPU takes no strategy; " + _INSTEAD)
