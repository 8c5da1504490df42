"""Parts of training in a frozen graph.

A graph that was built for training drops values and normalizes with the statistics of each batch, and freezing does not
change that. With Keras it has both branches and chooses one at run time, which the offline compiler of the NPU
does not read. Build the graph for inference, then restore the variables.

Reported::

    import tensorflow as tf
    from tensorflow.keras import backend as K

    model = tf.keras.models.load_model('model.h5')
    sess = K.get_session()
    frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits/Softmax'])

Reported::

    import tensorflow as tf

    def freeze(checkpoint):
        images = tf.placeholder(tf.float32, [1, 224, 224, 3])
        logits = network(images, is_training=True)
        with tf.Session() as sess:
            tf.train.Saver().restore(sess, checkpoint)
            return tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, [logits.op.name])

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *
    from tensorflow.keras import backend as K

    K.set_learning_phase(0)
    model = tf.keras.models.load_model('model.h5')
    sess = K.get_session()
    frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits/Softmax'])

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def freeze(checkpoint):
        logits = network(tf.placeholder(tf.float32, [1, 224, 224, 3]), is_training=False)
        with tf.Session() as sess:
            tf.train.Saver().restore(sess, checkpoint)
            return tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, [logits.op.name])

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    logits = network(images, is_training=True)
    loss = tf.losses.softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer().minimize(loss)
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(train_op)
        frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits'])
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import enclosing_function, is_in_test, trains_itself
from ...analysis.freezing import BLOCKS, FREEZERS
from ...semantics.model import Call
from ...syntax.expressions import boxed_constant, last_name
from ..base import Context, Finding

CODE = "NPU284"
CALLS = FREEZERS
_SESSION = "tensorflow.keras.backend.get_session"


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if is_in_test(context, call.node) or trains_itself(context):
        return
    block = enclosing_function(context, call.node)
    inside = context.once(_calls_by_block)[block]
    for inner in inside:
        for keyword in inner.node.keywords:
            if keyword.arg in ("training", "is_training") and boxed_constant(keyword.value) == (True,):
                yield Finding(
                    keyword.value,
                    "the frozen graph is built for training: it drops values or uses statistics of the batch. "
                    "Pass {0}=False",
                    keyword.arg,
                )
    if "set_learning_phase" not in context.source.text and any(
        last_name(inner.node.func) == "get_session" and context.resolve(inner.node.func, inner.where) == _SESSION
        for inner in inside
    ):
        yield Finding(
            call.node,
            "the frozen graph has the branches for training. "
            "Call tf.keras.backend.set_learning_phase(0) before the model is made",
        )


def _calls_by_block(context: Context) -> dict[ast.AST, list[Call]]:
    by_block: dict[ast.AST, list[Call]] = {}
    for call in context.names.calls:
        for around in context.names.ancestors(call.node):
            if isinstance(around, BLOCKS):
                by_block.setdefault(around, []).append(call)
    return by_block
