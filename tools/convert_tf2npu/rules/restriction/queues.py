"""Input queues.

On the NPU data comes from ``tf.data`` or from ``feed_dict``. Queues and their readers run on the host outside the
input pipeline. Several threads that fill a batch queue also give batches in no fixed order. The rule reports one
finding for each file, and one for each batch queue with several threads.

Queues that a script fills itself (``tf.FIFOQueue``, ``StagingArea``) run on the host, too. Each ``dequeue`` waits for
it, so the NPU is idle meanwhile. ``PaddingFIFOQueue`` and ``dequeue_up_to`` return tensors with a dynamic shape, for
which the NPU recompiles. The rule reports the first queue of a file that reads one, unless processes share it by a
name.

Read with ``tf.data``: ``TFRecordDataset`` or ``TextLineDataset``, ``map``, ``shuffle``, and ``batch`` with
``drop_remainder=True``.

With facts of ``npu-shim observe``, a batch queue with one thread in all observed runs is not reported.

Reported::

    import tensorflow as tf

    names = tf.train.string_input_producer(files)
    _, record = tf.TFRecordReader().read(names)

Reported::

    import tensorflow as tf

    images, labels = tf.train.shuffle_batch([image, label], 32, 1000, 500, num_threads=4)

Reported::

    import tensorflow as tf

    queue = tf.PaddingFIFOQueue(64, [tf.float32], shapes=[[None, 80]])
    frames = queue.dequeue_many(8)

Reported::

    import tensorflow as tf

    area = tf.contrib.staging.StagingArea([tf.float32])
    batch = area.get()

Reported::

    import tensorflow as tf
    from tensorflow.python.ops import data_flow_ops

    area = data_flow_ops.StagingArea([tf.float32])
    batch = area.get()

Untouched::

    import tensorflow as tf

    done = tf.FIFOQueue(1, tf.int32, shared_name='done')
    session.run(done.dequeue())

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

from ...analysis.device_placement import is_first_call, is_in_test
from ...facts.kinds import SHAPE
from ...semantics.model import Call
from ...syntax.expressions import boxed_constant, last_part
from ...syntax.words import has_words
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding, Question

CODE = "NPU223"
_INPUT = calls_of_kind("queue")
_PADDED = "PaddingFIFOQueue"
_QUEUES = ("FIFOQueue", _PADDED, "RandomShuffleQueue", "PriorityQueue", "StagingArea")
_MODULES = ("", "queue.", "io.", "contrib.staging.", "python.ops.data_flow_ops.")
_OWN = frozenset(f"tensorflow.{module}{name}" for module in _MODULES for name in _QUEUES) | {
    "tensorflow.contrib.slim.prefetch_queue.prefetch_queue"
}
CALLS = _INPUT | _OWN
_THREADS = {"batch": 2, "shuffle_batch": 4}  # the position of num_threads


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    short = last_part(name)
    if name in _OWN:
        yield from _findings_of_own_queue(context, call, short)
        return
    place = _THREADS.get(short)
    if place is not None:
        given = {k.arg: k.value for k in call.node.keywords}.get("num_threads")
        if given is None and len(call.node.args) > place:
            given = call.node.args[place]
        seen = context.observed_at(CODE, SHAPE, given) if given is not None else None
        has_one = boxed_constant(given) == (1,) or (seen is not None and seen.only("number") == 1)
        if given is not None and not has_one:
            yield Finding(
                call.node,
                "batch queues with several threads are unsupported on the NPU. "
                "Set num_threads=1, or use tf.data and dataset.batch(n, drop_remainder=True)",
                asks=(Question(SHAPE, given),),
            )
            return
    if is_first_call(context, call, _INPUT, context.names.tree, on_npu=False):
        yield Finding(
            call.node,
            "input queues ({0}) are unsupported on the NPU. "
            "Read with tf.data: TFRecordDataset, map, shuffle, batch(n, drop_remainder=True)",
            short,
        )


def _findings_of_own_queue(context: Context, call: Call, short: str) -> Iterator[Finding]:
    reads = ".get(" if short == "StagingArea" else ".dequeue"
    is_shared = any(keyword.arg == "shared_name" for keyword in call.node.keywords)
    if not has_words(context.source.text, (reads,)) or is_shared or is_in_test(context, call.node):
        return
    if is_first_call(context, call, _OWN, context.names.tree, on_npu=False):
        shape = ""
        if short == _PADDED or has_words(context.source.text, (".dequeue_up_to(",)):
            shape = " and returns dynamic shapes, for which the NPU recompiles"
        fix = "Read with tf.data: from_generator, padded_batch, prefetch"
        if short in ("StagingArea", "prefetch_queue"):
            fix = "Remove it, and prefetch input with dataset.prefetch(2)"
        yield Finding(call.node, "{0} runs on the host{1}. {2}", short, shape, fix)
