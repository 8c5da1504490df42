"""Replace names of tf.contrib (with ``--compat-v1``).

TensorFlow 2 has no tf.contrib. Many of its names are also in ``tf.compat.v1``. Cells, TPU and cluster classes are the
same objects there. Functions that were rewritten get their new arguments, if these mean the same. Names without such
a replacement are reported by NPU260.

Before::

    import tensorflow as tf

    cell = tf.contrib.rnn.LSTMCell(128, initializer=tf.contrib.layers.xavier_initializer())
    flat = tf.contrib.layers.flatten(x, scope='flat')
    accuracy = tf.contrib.metrics.streaming_accuracy(predictions, labels)

After::

    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()

    cell = tf.nn.rnn_cell.LSTMCell(128, initializer=tf.glorot_uniform_initializer())
    flat = tf.layers.flatten(x, name='flat')
    accuracy = tf.metrics.accuracy(predictions=predictions, labels=labels)

Before::

    import tensorflow as tf
    from tensorflow.contrib import rnn
    from tensorflow.contrib.framework import get_or_create_global_step

    def net(inputs):
        cell = rnn.MultiRNNCell([rnn.GRUCell(64) for _ in range(2)])
        return tf.nn.dynamic_rnn(cell, inputs), get_or_create_global_step()

After::

    import tensorflow.compat.v1 as tf
    from tensorflow.compat.v1.nn import rnn_cell as rnn
    from tensorflow.compat.v1.train import get_or_create_global_step

    def net(inputs):
        cell = rnn.MultiRNNCell([rnn.GRUCell(64) for _ in range(2)])
        return tf.nn.dynamic_rnn(cell, inputs), get_or_create_global_step()

Before::

    import tensorflow as tf
    from tensorflow.contrib import rnn

    def net(inputs):
        return rnn.static_rnn(rnn.BasicLSTMCell(64), inputs)

After::

    import tensorflow.compat.v1 as tf

    def net(inputs):
        return tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(64), inputs)

Untouched::

    import tensorflow.compat.v1 as tf
    import tf_slim as slim

    def net(x):
        return slim.conv2d(x, 8, [3, 3], weights_initializer=tf.glorot_uniform_initializer())

Untouched::

    import numpy as np
    import contrib

    def net(x):
        return contrib.rnn.LSTMCell(8)

Untouched::

    try:
        from tensorflow.contrib.rnn import LSTMCell
    except ImportError:
        from tensorflow.compat.v1.nn.rnn_cell import LSTMCell

    def cell():
        return LSTMCell(8)
"""

from __future__ import annotations

from typing import Iterator

from ...rewrite.spans import Spans
from ..base import Change, Context, Finding
from .contrib.contrib_plan import plan_contrib_rewrites
from .contrib.contrib_uses import CODE

__all__ = ["CODE", "NEEDS", "check_last"]
NEEDS = {"compat_v1": True}


def check_last(context: Context, replaced: Spans) -> Iterator[Change | Finding]:
    if context.names.lift is not None:
        yield from plan_contrib_rewrites(context, replaced).changes
