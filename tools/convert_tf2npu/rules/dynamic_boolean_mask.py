"""tf.boolean_mask and tf.dynamic_partition.

They give as many rows as the mask has true ones, which is known only when the graph runs; the card
compiles the graph again for each number it meets. A sum or a mean over the chosen rows can be had with
a mask of fixed shape. Told once in a statement.

Told::

    import tensorflow as tf

    loss = tf.reduce_mean(tf.boolean_mask(losses, mask))

Told::

    import tensorflow as tf

    negatives, positives = tf.dynamic_partition(scores, labels, 2)

Untouched::

    import tensorflow as tf

    weights = tf.cast(mask, tf.float32)
    loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)

Untouched::

    from numpy.ma import boolean_mask
    import tensorflow as tf

    rows = boolean_mask(rows, mask)
"""
from __future__ import annotations

import ast
from typing import Iterator, Optional

from ..registry import Context, Finding, Result
from ..scopes import Call
from ..whereabouts import first_call, runs_on_card

CODE = 'NPU231'
CALLS = frozenset('tensorflow.' + name for name in '''boolean_mask ragged.boolean_mask dynamic_partition
sparse_retain sparse.retain python.ops.array_ops.boolean_mask'''.split())
_SUMS = {
    'tensorflow.reduce_sum': 'tf.reduce_sum(x * weights)',
    'tensorflow.math.reduce_sum': 'tf.reduce_sum(x * weights)',
    'tensorflow.reduce_mean': 'tf.reduce_sum(x * weights) / tf.reduce_sum(weights)',
    'tensorflow.math.reduce_mean': 'tf.reduce_sum(x * weights) / tf.reduce_sum(weights)',
}


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    statement = call.where.statement or context.names.tree
    if not runs_on_card(context, call.node) or not first_call(context, call, CALLS, statement):
        return
    parent = context.names.parents.get(call.node)
    around = context.resolve(parent.func, call.where) if isinstance(parent, ast.Call) else None
    instead = _SUMS.get(around or '')
    yield Finding(call.node, 'how many rows this keeps is known only when it runs, and the card compiles the '
                  'graph again for each number; write ' + (
                      'weights = tf.cast(mask, x.dtype) and %s' % instead if instead else
                      'tf.where(mask, x, tf.zeros_like(x)) and weigh what follows with '
                      'tf.cast(mask, x.dtype)'))
