"""Horovod not converted.

Horovod's collectives use MPI, gloo or NCCL, which do not support the memory of an NPU. ``npu_shim.horovod`` has the same
interface over the collectives of the NPU. Run the tool with ``-d horovod`` or ``-d auto`` to import it instead (NPU301). Without this
option the rule reports the first import of Horovod in each file.

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

    import npu_shim.horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()

Untouched::

    import horovod.torch as hvd
    import tensorflow as tf

    hvd.init()
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.horovod_imports import horovod_imports
from ..base import Context, Finding

CODE = "NPU254"


def check_file(context: Context) -> Iterator[Finding]:
    if context.distributed == "horovod":
        return
    imports = horovod_imports(context)
    if not all(imported.is_foreign or imported.is_shared for imported in imports):
        yield Finding(
            imports[0].node, "Horovod does not support the NPU. Run the tool with -d horovod to replace the import"
        )
