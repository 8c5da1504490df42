"""Horovod not converted.

Horovod's collectives use MPI, gloo or NCCL, which do not support the memory of an NPU. Run the tool with ``-d
horovod`` to convert the script to the collectives of the NPU (NPU301). Without it the rule reports where a script
starts Horovod.

Reported::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    def main(_):
        hvd.init()
        train(hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.001 * hvd.size())))

Reported::

    import tensorflow as tf

    if FLAGS.horovod:
        import horovod.tensorflow.keras as hvd
        hvd.init()

Untouched::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    def learning_rate(step):
        return tf.train.cosine_decay(0.1 * hvd.size(), step, 1000)

Untouched::

    import horovod.torch as hvd
    import tensorflow as tf

    hvd.init()
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import in_test
from ...semantics.model import Call
from ..base import Context, Finding, Result

CODE = "NPU254"
CALLS = ("horovod.init",)


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if context.distributed != "horovod" and not in_test(context, call.node):
        yield Finding(
            call.node,
            "Horovod does not support the NPU. Run the tool with -d horovod to convert it to NPU collectives",
        )
