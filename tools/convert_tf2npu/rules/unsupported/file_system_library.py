"""File systems of a script's own library.

``tf.load_file_system_library`` loads a file system for paths like ``s3://`` or ``hdfs://``. TensorFlow reads and writes
such files on the host, so they work with an NPU. But the library is compiled for one version of TensorFlow and one
processor. The host of an NPU has TensorFlow 1.15.0 or 2.6.5, often on aarch64, and does not load another build.

* Build the library on that host from its sources, with the flags of ``tf.sysconfig``.
* Or mount the storage as a folder, and give the script paths in it.

The rule reports the first library of each file. NPU218 reports libraries of operators.

Reported::

    import tensorflow as tf

    tf.load_file_system_library('lib/s3_file_system.so')

Reported::

    import tensorflow.compat.v1 as tf

    for library in libraries:
        tf.load_file_system_library(library)

Untouched::

    import tensorflow as tf

    with tf.gfile.Open('s3://data/train.txt') as lines:
        print(lines.read())

Untouched::

    from plugins import tf

    tf.load_file_system_library('lib/s3_file_system.so')
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_first_call, is_in_test
from ...semantics.model import Call
from ..base import Context, Finding

CODE = "NPU286"
CALLS = frozenset(
    "tensorflow." + name
    for name in ("load_file_system_library", "python.framework.load_library.load_file_system_library")
)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if not is_in_test(context, call.node) and is_first_call(context, call, CALLS, context.names.tree, on_npu=False):
        yield Finding(
            call.node,
            "a file system library fits one TensorFlow and processor. Build it on the host of the NPU, or mount the "
            "storage as a folder",
        )
