"""Replace Horovod with NPU collectives (with ``-d horovod``).

The tool converts all uses of Horovod or none. If a file has a use that cannot be converted, this file and the files
that train together with it (those that the same script imports) are not converted, and each such use is reported.
Options for the transport of gradients (compression, names, devices) are removed. The computed values stay the same.
Without ``-d horovod`` see NPU254.

Options: -d horovod

Before::

    import tensorflow as tf
    import horovod.tensorflow as hvd

    def main(_):
        hvd.init()
        opt = tf.train.AdamOptimizer(0.001 * hvd.size())
        opt = hvd.DistributedOptimizer(opt, compression=hvd.Compression.none)
        hooks = [hvd.BroadcastGlobalVariablesHook(0)]
        model_dir = FLAGS.model_dir if hvd.rank() == 0 else None
        train(opt, hooks, model_dir)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def main(_):
        npu_sess, npu_shutdown = init_resource()
        opt = tf.train.AdamOptimizer(0.001 * get_npu_rank_size())
        opt = npu_distributed_optimizer_wrapper(opt)
        hooks = [NPUBroadcastGlobalVariablesHook(0, get_npu_rank_id())]
        model_dir = FLAGS.model_dir if get_npu_rank_id() == 0 else None
        train(opt, hooks, model_dir)
        shutdown_resource(npu_sess, npu_shutdown)
        close_session(npu_sess)

Before::

    import os, horovod.tensorflow as hvd
    import tensorflow as tf

    compression = hvd.Compression.fp16 if FLAGS.half else hvd.Compression.none
    opt = hvd.DistributedOptimizer(opt, compression=compression, op=hvd.Average)
    total = hvd.allreduce(loss, average=False)
    mean = hvd.allreduce(tensor=loss, name='loss')
    first = hvd.broadcast(rows, root_rank=0)
    with tf.Session() as sess:
        sess.run(hvd.broadcast_global_variables(0))

After::

    import os
    import tensorflow as tf
    from npu_shim.npu_init import *

    opt = npu_distributed_optimizer_wrapper(opt)
    total = npu_allreduce(loss, 'sum')
    mean = npu_allreduce(loss)
    first = hccl_ops.broadcast([rows], 0)[0]
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.group(*[v.assign(hccl_ops.broadcast([v], 0)[0]) for v in tf.global_variables()]))

Before::

    import tensorflow as tf
    import horovod.tensorflow.keras as hvd

    if __name__ == '__main__':
        if FLAGS.horovod:
            hvd.init()
        callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
        train(callbacks)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    if __name__ == '__main__':
        if FLAGS.horovod:
            npu_sess, npu_shutdown = init_resource()
        callbacks = [NPUBroadcastGlobalVariablesCallback(0)]
        train(callbacks)
        if FLAGS.horovod:
            shutdown_resource(npu_sess, npu_shutdown)
            close_session(npu_sess)

Untouched::

    import tensorflow as tf
    import horovod.tensorflow as hvd

    hvd.init()
    tape = hvd.DistributedGradientTape(tape)

Untouched::

    import horovod.torch as hvd
    import tensorflow as tf

    hvd.init()

Untouched::

    import tensorflow as tf
    import horovod.tensorflow as hvd

    opt = hvd.DistributedOptimizer(opt, op=hvd.Adasum)

Untouched::

    import tensorflow as tf
    import horovod.tensorflow as hvd

    hvd.init()
    train(hvd=hvd)
"""

from __future__ import annotations

import os
from typing import Iterator

from ..base import Change, Context, Finding, Result
from .partners import obstacle_elsewhere
from .plan import plan

CODE = "NPU301"
NEEDS = {"distributed": "horovod"}


def check_file(context: Context) -> Iterator[Result]:
    made = plan(context) if context.distributed == "horovod" else None
    if made is None:
        return
    if made.obstacles:
        yield from made.obstacles
        uses = "1 unsupported use" if len(made.obstacles) == 1 else f"{len(made.obstacles)} unsupported uses"
        yield Finding(
            made.node,
            f"Horovod not converted in this file: {uses}. Change the code as reported",
        )
        return
    elsewhere = obstacle_elsewhere(context, CODE)
    if elsewhere is not None:
        folder = os.path.dirname(context.names.path)
        yield Finding(
            made.node,
            "Horovod not converted in this file, because of "
            f"{os.path.relpath(elsewhere.path, folder)}:{elsewhere.line}: {elsewhere.why}",
        )
        return
    yield Change(made.node, "Horovod replaced by NPU collectives", made.edits, made.uses)
    yield from made.notes
