"""Use the NPU's dropout operator for tf.layers.dropout.

``tf.layers.dropout`` drops only while it trains. Where its ``training`` argument is a test that
Python decides when the graph is made, the call becomes the operator of the NPU under that test.
Where it may be a tensor, it stays and is told; an argument is none if the function itself tests it
with ``if``. The dropout of slim and of ``contrib.layers`` stays and is told too, for its arguments may
come from an ``arg_scope``.

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

    import tensorflow as tf
    from tensorflow.contrib import slim

    with slim.arg_scope([slim.dropout], is_training=False):
        net = slim.dropout(net, 0.5, scope='dropout7')

Untouched::

    import mylayers as layers
    import tensorflow as tf

    net = layers.dropout(net, rate=0.4, training=True)
"""
from __future__ import annotations

import ast
import re
from typing import Iterator, List, Optional

from ..decided import decided
from ..edits import one_minus, outer_end, rename, rename_keyword
from ..registry import Change, Context, Finding, Result
from ..scopes import Call
from ..signatures import LAYERS_DROPOUT, bind, constant
from ..source import Edit

CODE = 'NPU107'
_SLIM_DROPOUT = ('inputs', 'keep_prob', 'noise_shape', 'is_training', 'outputs_collections', 'scope', 'seed')
CALLS = frozenset({'tensorflow.layers.dropout', 'tensorflow.contrib.layers.dropout'})


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    node = call.node
    if name == 'tensorflow.contrib.layers.dropout':
        given = bind(node, _SLIM_DROPOUT).given('is_training')
        yield Finding(node, 'slim.dropout stays as it is, for %s; write npu_ops.dropout(x, keep_prob) if '
                      'is_training else x' % ('is_training may be a tensor' if given else
                                              'an arg_scope may say whether it trains'))
        return
    bound = bind(node, LAYERS_DROPOUT)
    training = bound.args.get('training')
    inputs = bound.args.get('inputs')
    literal = constant(training)
    if not bound.hidden and (training is None or literal and not literal[0]):
        return  # it never drops
    reason = ''
    if bound.hidden or bound.unknown or inputs is None or 'training' not in bound.keywords or \
            'noise_shape' in bound.positional:
        reason = 'its arguments are given in a way that cannot be turned over'
    elif bound.given('noise_shape'):
        reason = 'it has a noise_shape'
    elif not literal and not decided(context.names, training, call.where):
        reason = 'its training argument may be a tensor'
    elif not literal and not isinstance(inputs, ast.Name):
        reason = 'its input is computed in the call'
    edits: Optional[List[Edit]] = None if reason else _edits(context, call, bool(literal))
    if edits is None:
        yield Finding(node, 'tf.layers.dropout stays as it is, because %s; write npu_ops.dropout(x, '
                      'keep_prob=1 - rate) where it trains' % (reason or 'a comment or the order of its arguments is in the way'))
        return
    yield Change(node, 'dropout becomes the operator of the NPU', tuple(edits), ('npu_ops',))


def _edits(context: Context, call: Call, always: bool) -> Optional[List[Edit]]:
    source, node = context.source, call.node
    bound = bind(node, LAYERS_DROPOUT)
    edits = [rename(source, node.func, 'npu_ops.dropout')]
    if 'inputs' in bound.keywords:
        renamed = rename_keyword(source, bound.keywords['inputs'], 'x')
        if renamed is None:
            return None
        edits.append(renamed)
    if 'rate' in bound.args:
        edits += one_minus(source, bound.args['rate'])
        if 'rate' in bound.keywords:
            renamed = rename_keyword(source, bound.keywords['rate'], 'keep_prob')
            if renamed is None:
                return None
            edits.append(renamed)
        removed = _without(context, node, bound.keywords['training'], '')
    else:
        removed = _without(context, node, bound.keywords['training'], 'keep_prob=0.5')
    if removed is None:
        return None
    edits.append(removed)
    if not always:
        start, end = source.start(node), source.end(node)
        test = source.segment(bound.args['training'])
        if isinstance(bound.args['training'], (ast.IfExp, ast.Lambda)):
            test = '(%s)' % test
        parent = context.names.parents[node]
        argument = isinstance(parent, (ast.Call, ast.keyword)) and \
            getattr(parent, 'func', None) is not node
        # a test of several lines needs something that holds them together
        around = not argument and (bool(re.search(r'[\r\n]', test)) or not isinstance(
            parent, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)))
        tail = ' if %s else %s' % (test, source.segment(bound.args['inputs']))
        if around:
            edits.insert(0, Edit(start, start, '('))
        edits.append(Edit(end, end, tail + (')' if around else ''), closing=True))
    return edits


def _without(context: Context, node: ast.Call, keyword: ast.keyword, instead: str) -> Optional[Edit]:
    """Take a keyword argument out of a call, with the comma before it."""
    source = context.source
    values = list(node.args) + [k.value for k in node.keywords]
    before = [v for v in values if source.start(v) < source.start(keyword.value)]
    if not before:
        return None
    return Edit(outer_end(source, node, max(before, key=source.start)), outer_end(source, node, keyword.value),
                ', ' + instead if instead else '')
