"""Input queues.

On the NPU data comes from ``tf.data`` or from ``feed_dict``. Queues and their readers run on the host outside the
input pipeline. Several threads that fill a batch queue also give batches in no fixed order. The rule reports one
finding for each file, and one for each batch queue with several threads.

Read with ``tf.data``: ``TFRecordDataset`` or ``TextLineDataset``, ``map``, ``shuffle``, and ``batch`` with
``drop_remainder=True``.

Reported::

    import tensorflow as tf

    names = tf.train.string_input_producer(files)
    _, record = tf.TFRecordReader().read(names)

Reported::

    import tensorflow as tf

    images, labels = tf.train.shuffle_batch([image, label], 32, 1000, 500, num_threads=4)

Untouched::

    import tensorflow as tf

    dataset = tf.data.TFRecordDataset(files).map(parse).shuffle(1000)

Untouched::

    import queue
    import tensorflow as tf

    work = queue.PriorityQueue()
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import first_call
from ...semantics.model import Call
from ...syntax.expressions import constant, last_part
from ...tf_api.support import names_of
from ..base import Context, Finding, Result

CODE = "NPU223"
CALLS = names_of("queue")
_THREADS = {"batch": 2, "shuffle_batch": 4}  # the position of num_threads


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    short = last_part(name)
    place = _THREADS.get(short)
    if place is not None:
        given = {k.arg: k.value for k in call.node.keywords}.get("num_threads")
        if given is None and len(call.node.args) > place:
            given = call.node.args[place]
        if given is not None and constant(given) != (1,):
            yield Finding(
                call.node,
                "batch queues with several threads are unsupported on the NPU. "
                "Set num_threads=1, or use tf.data and dataset.batch(n, drop_remainder=True)",
            )
            return
    if first_call(context, call, CALLS, context.names.tree, on_npu=False):
        yield Finding(
            call.node,
            f"input queues ({short}) are unsupported on the NPU. "
            "Read with tf.data: TFRecordDataset, map, shuffle, batch(n, drop_remainder=True)",
        )
