"""Replace tf.layers.dropout with the NPU operator.

``tf.layers.dropout`` drops only in training. If Python evaluates its ``training`` argument while the graph is built,
the rule writes the NPU operator under this condition. An argument that the function itself tests with ``if`` is not a
tensor.

The rule reports a call whose ``training`` argument may be a tensor, or whose arguments it cannot convert. Write
``npu_ops.dropout`` in a conditional expression, or in ``tf.cond`` for a tensor. With facts of ``npu-shim observe`` the
rule writes the conditional expression if the argument was a value of Python in all observed runs. It imports
``npu_convert_dropout`` for other calls that ran in a graph, which makes the Dropout layers of all graphs in the process use
the NPU operator, under a condition of either kind.

Before::

    import tensorflow.compat.v1 as tf

    def model_fn(features, labels, mode):
        net = tf.layers.dropout(net, rate=0.4, training=mode == tf.estimator.ModeKeys.TRAIN)
        net = tf.layers.dropout(inputs=net, rate=0.1, training=mode == tf.estimator.ModeKeys.TRAIN)
        net = tf.layers.dropout(net, FLAGS.rate, training=True, name='drop')
        return net

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_ops

    def model_fn(features, labels, mode):
        net = npu_ops.dropout(net, keep_prob=0.6) if mode == tf.estimator.ModeKeys.TRAIN else net
        net = npu_ops.dropout(x=net, keep_prob=0.9) if mode == tf.estimator.ModeKeys.TRAIN else net
        net = npu_ops.dropout(net, 1 - FLAGS.rate, name='drop')
        return net

Before::

    import tensorflow.compat.v1 as tf

    def model_fn(features, labels, mode):
        training = mode == tf.estimator.ModeKeys.TRAIN
        return tf.layers.dropout(features, rate=0.5, training=training) + 1

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_ops

    def model_fn(features, labels, mode):
        training = mode == tf.estimator.ModeKeys.TRAIN
        return (npu_ops.dropout(features, keep_prob=0.5) if training else features) + 1

Before::

    import tensorflow.compat.v1 as tf

    def cnn(images, training):
        return tf.layers.dropout(images, FLAGS.dropout, training=training)

    def model_fn(features, labels, mode):
        return cnn(features, training=mode == tf.estimator.ModeKeys.TRAIN)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_ops

    def cnn(images, training):
        return npu_ops.dropout(images, 1 - FLAGS.dropout) if training else images

    def model_fn(features, labels, mode):
        return cnn(features, training=mode == tf.estimator.ModeKeys.TRAIN)

Before::

    import tensorflow.compat.v1 as tf

    def prenet(x, is_training):
        rate = 0.5 if is_training else 0.1
        return tf.layers.dropout(x, rate=rate, training=is_training)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_ops

    def prenet(x, is_training):
        rate = 0.5 if is_training else 0.1
        return npu_ops.dropout(x, keep_prob=1 - rate) if is_training else x

Untouched::

    import tensorflow.compat.v1 as tf

    is_training = tf.placeholder(tf.bool)
    net = tf.layers.dropout(net, rate=0.4, training=is_training)

Untouched::

    import tensorflow.compat.v1 as tf

    net = tf.layers.dropout(net, rate=0.4)

Untouched::

    import tensorflow.compat.v1 as tf

    def cnn(images, training):
        return tf.layers.dropout(images, rate=0.4, training=training)

Untouched::

    import mylayers as layers
    import tensorflow as tf

    net = layers.dropout(net, rate=0.4, training=True)
"""

from __future__ import annotations

from typing import Iterator

from ...rewrite.call_edits import edits_to_keep_probability
from ...semantics.model import Call
from ...semantics.signatures import LAYERS_DROPOUT, bind_arguments
from ...syntax.expressions import boxed_constant
from ..base import Change, Context, Finding
from .training_dropouts import Dropout, results_of_dropout, switched_or_finding

CODE = "NPU107"
CALLS = frozenset({"tensorflow.layers.dropout"})
_NAME = "tf.layers.dropout"


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    bound = bind_arguments(call.node, LAYERS_DROPOUT)
    training = bound.args.get("training")
    literal = boxed_constant(training)
    if not bound.hidden and (training is None or literal and not literal[0]):
        return  # without training it never drops
    reason = ""
    if (
        bound.hidden
        or bound.unknown
        or "inputs" not in bound.args
        or "training" not in bound.keywords
        or "noise_shape" in bound.positional
    ):
        reason = "has arguments that cannot be converted"
    elif bound.is_given("noise_shape"):
        reason = "has a noise_shape"
    if reason or training is None:
        finding = Finding(
            call.node, "{0} {1}. Write npu_ops.dropout(x, keep_prob=1 - rate) for training", _NAME, reason
        )
        if bound.hidden or bound.is_given("noise_shape"):  # which the library leaves to the layer
            yield finding
        else:
            yield from switched_or_finding(context, CODE, finding)
        return
    rate = bound.args.get("rate")
    yield from results_of_dropout(
        context,
        Dropout(
            call,
            bound,
            training,
            bound.keywords["training"],
            edits_to_keep_probability(context.source, rate) if rate is not None else (),
            "" if rate is not None else "keep_prob=0.5",
            (("rate", "keep_prob"), ("inputs", "x")),
        ),
        _NAME,
        CODE,
    )
