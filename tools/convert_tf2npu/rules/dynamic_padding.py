"""Batches that are padded to their own longest member.

With ``None`` in ``padded_shapes``, and in ``bucket_by_sequence_length`` unless it pads to the bucket's
boundary, each batch is as long as its longest member. The card compiles the graph again for each length
it meets. Padding to a fixed length, or to that of a few buckets, makes a few compilations of it.

Told::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_generator(read, tf.int64)
    shapes = ([None], [])
    dataset = dataset.padded_batch(32, shapes, drop_remainder=True)
    other = dataset.padded_batch(32, padded_shapes=([None], []), drop_remainder=True)

Told::

    import tensorflow as tf

    dataset = dataset.apply(tf.data.experimental.bucket_by_sequence_length(
        length, boundaries, sizes))

Untouched::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_generator(read, tf.int64)
    dataset = dataset.padded_batch(32, padded_shapes=([128], []), drop_remainder=True)
    dataset = dataset.apply(tf.data.experimental.bucket_by_sequence_length(
        length, boundaries, sizes, pad_to_bucket_boundary=True))

Untouched::

    import tensorflow as tf

    rows = loader.padded_batch(32, padded_shapes=[None])
"""
from __future__ import annotations

import ast
from typing import Iterator, Optional

from ..infer import DATASET
from ..registry import Context, Finding, Result
from ..scopes import Call, Where
from ..signatures import bind, constant

CODE = 'NPU238'
CALLS = frozenset({'tensorflow.data.experimental.bucket_by_sequence_length',
                   'tensorflow.contrib.data.bucket_by_sequence_length'})
METHODS = frozenset({'padded_batch'})
_BUCKETS = ('element_length_func', 'bucket_boundaries', 'bucket_batch_sizes', 'padded_shapes',
            'padding_values', 'pad_to_bucket_boundary', 'no_padding', 'drop_remainder')


def check_method(context: Context, call: Call) -> Iterator[Result]:
    assert isinstance(call.node.func, ast.Attribute)
    shapes = bind(call.node, ('batch_size', 'padded_shapes', 'padding_values')).args.get('padded_shapes')
    if not _has_open_length(context, shapes, call.where):
        return
    if context.types.of(call.node.func.value, call.where) == DATASET:
        yield Finding(call.node, 'each batch is as long as its longest member, and the card compiles the graph '
                      'again for each length; write a fixed length in padded_shapes in place of None, or '
                      'npu_shim.data.bucket_by_length(dataset, length_of, [LENGTHS], batch_size)')


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    bound = bind(call.node, _BUCKETS)
    given = bound.args.get('pad_to_bucket_boundary')
    if not bound.hidden and (given is None or constant(given) == (False,)):
        yield Finding(call.node, 'each batch is as long as its longest member, and the card compiles the graph '
                      'again for each length; write pad_to_bucket_boundary=True and a few boundaries')


def _has_open_length(context: Context, shapes: Optional[ast.AST], where: Where) -> bool:
    """Whether a literal of shapes, or the one that a name stands for, has an open dimension; a shape that is
    None altogether is not open."""
    if isinstance(shapes, ast.Name):
        bindings = context.names.lookup(shapes.id, where) or []
        return len(bindings) == 1 and bindings[0].kind == 'value' and not isinstance(
            bindings[0].node, ast.Name) and _has_open_length(context, bindings[0].node, bindings[0].where)
    return shapes is not None and any(
        isinstance(node, (ast.List, ast.Tuple)) and any(constant(e) == (None,) for e in node.elts)
        for node in ast.walk(shapes))
