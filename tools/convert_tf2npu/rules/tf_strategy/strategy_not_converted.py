"""Strategies of tf.distribute that are not converted.

A strategy places replicas on the GPUs or machines that TensorFlow detects, and NPUs are not among them. On NPUs, each
rank runs the script on its own NPU, and the optimizer averages the gradients. The option ``-d tf_strategy`` converts
strategies to this form (see NPU302 to NPU306), and so does ``-d auto`` in the programs that have a strategy. Without it,
they are not converted and train one replica on one rank.

With ``-d auto`` the rule reports a file that programs of Horovod and programs of strategies share, if it would change for
strategies. It is converted for Horovod. Convert the programs of strategies apart, into a folder of their own, with
``-d tf_strategy``.

With facts of ``npu-shim observe``, a run configuration whose strategy was None in all observed runs is listed as not
reached, and so are shared files if no observed run created a strategy.

Reported::

    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    config = tf.estimator.RunConfig(train_distribute=strategy)

Reported::

    import tensorflow as tf

    def config_for(strategy):
        return tf.estimator.RunConfig(model_dir=FLAGS.model_dir).replace(train_distribute=strategy)

Reported::

    import tensorflow as tf

    class Replicator(tf.distribute.MirroredStrategy):
        pass

    strategy = Replicator(['/gpu:0', '/gpu:1'])

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

from ...analysis.device_placement import is_in_test
from ...analysis.strategies import NAMES, TPU, bound_configuration, creates_custom_strategy, strategies_by_argument
from ...facts.kinds import VALUE
from ..base import Context, Finding, Question

CODE = "NPU250"
ONCE_A_FILE = True
SHOWS = "tf_strategy"
ON_OBJECTS = ("Strategy", "_distribute")
OF_BOTH = (  # with -d auto
    "programs of Horovod and of strategies share this file, which strategies would change. "
    "Convert the programs of strategies apart"
)
_FIX = "Run the tool with -d tf_strategy"


def check_file(context: Context) -> Iterator[Finding]:
    if context.distributed == "tf_strategy" or not any(word in context.source.text for word in ON_OBJECTS):
        return
    for call in context.names.calls:
        name = context.called_names.get(call.node, "")
        if is_in_test(context, call.node) or name.endswith(".OneDeviceStrategy"):
            continue
        if NAMES.get(name, TPU) != TPU or creates_custom_strategy(context.names, call.node, call.where):
            yield Finding(
                call.node, "a strategy places replicas on the devices of TensorFlow, which has no NPUs. {0}", _FIX
            )
            continue
        kinds = strategies_by_argument(context, call.node, call.where)
        bound = bound_configuration(context, call.node, call.where)
        unclear = [bound.args[name] for name in kinds if None in kinds[name]] if bound is not None else []
        if unclear:
            seen = [context.observed_at(CODE, VALUE, value) for value in unclear]
            yield Finding(
                call.node,
                "an Estimator on the NPU accepts no strategy. {0}",
                _FIX,
                asks=tuple(Question(VALUE, value) for value in unclear),
                unused=all(answer is not None and answer.only("is") == "none" for answer in seen),
            )
